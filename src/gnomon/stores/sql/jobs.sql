-- Jobs: written, found by id or slug, claimed when they are due, moved on (JOB-1, JOB-2).

-- name: insert
INSERT INTO jobs (
    id, slug, name, role, cadence, unit, every, calendar, anchor_at, payload, dedup_key, grace_seconds, enabled,
    version, next_fire_at, created_at, created_by, updated_at, updated_by
) VALUES (
    :id, :slug, :name, :role, :cadence, :unit, :every, :calendar, :anchor_at, :payload, :dedup_key, :grace_seconds,
    :enabled, 1, :next_fire_at, :now, :by, :now, :by
)
RETURNING *;

-- name: find
-- two searches: with OR one of the engines reads the whole index
SELECT * FROM jobs WHERE deleted_at IS NULL AND id IN (
    SELECT id FROM jobs WHERE id = :name
    UNION ALL
    SELECT id FROM jobs WHERE slug = :name AND deleted_at IS NULL
);

-- name: page
SELECT * FROM jobs
WHERE deleted_at IS NULL AND id > :after
  AND (CAST(:role AS TEXT) IS NULL OR role = :role)
  AND (CAST(:enabled AS BIGINT) IS NULL OR enabled = :enabled)
ORDER BY id
LIMIT :limit;

-- name: revise
UPDATE jobs SET
    name = :name, role = :role, cadence = :cadence, unit = :unit, every = :every, calendar = :calendar,
    payload = :payload, dedup_key = :dedup_key, grace_seconds = :grace_seconds, enabled = :enabled, error = NULL,
    version = version + 1, next_fire_at = :next_fire_at, updated_at = :now, updated_by = :by
WHERE id = :id AND version = :version AND deleted_at IS NULL
RETURNING *;

-- name: delete
UPDATE jobs SET deleted_at = now_us(), next_fire_at = NULL, updated_at = now_us(), updated_by = :by
WHERE id = :id AND version = :version AND deleted_at IS NULL
RETURNING id;

-- name: due
SELECT
    id, slug, role, cadence, calendar, anchor_at, payload, dedup_key, grace_seconds, version, next_fire_at,
    recorded_until, now_us() AS now
FROM jobs
WHERE next_fire_at <= now_us()
ORDER BY next_fire_at
LIMIT :limit
-- who is at work on a job keeps it; nobody waits for that
--postgres: FOR UPDATE SKIP LOCKED
;

-- name: next_due
SELECT min(next_fire_at) - now_us() AS wait_us FROM jobs WHERE next_fire_at IS NOT NULL;

-- name: advance
-- rows: id text, claimed_at int, next_fire_at int, recorded_until int, seen_version int, seen_recorded int
UPDATE jobs SET next_fire_at = :next_fire_at, recorded_until = coalesce(:recorded_until, recorded_until)
FROM @rows
-- said so that each is found by its id: by instant all would be looked through that share its instant
WHERE id = :id AND next_fire_at + 0 = :claimed_at AND version = :seen_version
  AND coalesce(recorded_until, -1) = coalesce(:seen_recorded, -1)
RETURNING id;

-- name: fired
-- rows: id text, at int
UPDATE jobs SET last_fire_at = :at
FROM @rows
WHERE id = :id AND (last_fire_at IS NULL OR last_fire_at < :at);

-- name: recorded
UPDATE jobs SET recorded_until = :at WHERE id = :id AND (recorded_until IS NULL OR recorded_until < :at);

-- name: set_aside
UPDATE jobs SET enabled = 0, next_fire_at = NULL, error = :error, version = version + 1, updated_at = now_us(),
    updated_by = :by
WHERE id = :id AND version = :version AND deleted_at IS NULL
RETURNING id;

-- name: of_calendar
SELECT * FROM jobs
WHERE calendar = :slug AND deleted_at IS NULL AND next_fire_at IS NOT NULL AND id > :after
ORDER BY id
LIMIT :limit;

-- name: far_ahead
SELECT id, cadence, calendar, anchor_at, NULL AS starts_at, next_fire_at, recorded_until, now_us() AS now
FROM jobs
WHERE next_fire_at >= :after AND (next_fire_at > :after OR id > :after_id)
ORDER BY next_fire_at, id
LIMIT :limit;

-- name: realign
-- rows: id text, claimed_at int, next_fire_at int
UPDATE jobs SET next_fire_at = :next_fire_at
FROM @rows
WHERE id = :id AND next_fire_at + 0 = :claimed_at;
