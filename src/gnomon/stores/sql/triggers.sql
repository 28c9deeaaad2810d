-- Triggers: one for each slot of a job, given to an instance, pushed, acknowledged, ended (JOB-3, JOB-4).

-- name: record
-- rows: id text, job_id text, nominal_fire_at int, dedup_key text, payload text, status text, reason text,
-- rows: coalesced_first int, coalesced_last int, coalesced_count int, wait_until int
INSERT INTO triggers (
    id, job_id, nominal_fire_at, dedup_key, payload, status, reason, coalesced_first, coalesced_last, coalesced_count,
    wait_until, finished_at, created_at
)
SELECT
    :id, :job_id, :nominal_fire_at, :dedup_key, :payload, :status, :reason, :coalesced_first, :coalesced_last,
    :coalesced_count, :wait_until, CASE WHEN :status = 'missed' THEN now_us() END, now_us()
FROM @rows WHERE true
ON CONFLICT (job_id, nominal_fire_at) DO NOTHING
RETURNING id;

-- name: waiting
-- those for whom it is soonest too late come first
SELECT
    t.id, t.job_id, t.nominal_fire_at, t.wait_until, t.taken_from, t.pushes, t.reason,
    j.role, j.enabled, j.deleted_at, now_us() AS now
FROM triggers AS t JOIN jobs AS j ON j.id = t.job_id
WHERE t.finished_at IS NULL AND t.instance_id IS NULL
  AND t.wait_until >= :after AND (t.wait_until > :after OR t.id > :after_id)
ORDER BY t.wait_until, t.id
LIMIT :limit
--postgres: FOR UPDATE OF t SKIP LOCKED
;

-- name: givable
-- whether somebody has come, or has room again, for any that waits, or its job was taken from it
SELECT 1 AS found FROM (
    SELECT DISTINCT j.role, CASE WHEN j.deleted_at IS NULL THEN j.enabled ELSE 0 END AS wanted
    FROM triggers AS t JOIN jobs AS j ON j.id = t.job_id
    WHERE t.finished_at IS NULL AND t.instance_id IS NULL
) AS waits
WHERE waits.wanted = 0 OR EXISTS (
    SELECT 1 FROM instances AS i
    WHERE i.role = waits.role AND i.status = 'online' AND i.server IS NOT NULL
      AND i.max_in_flight > (
        (SELECT count(*) FROM triggers AS h WHERE h.instance_id = i.id AND h.finished_at IS NULL)
        + (SELECT count(*) FROM run_pushes AS p WHERE p.instance_id = i.id AND p.finished_at IS NULL)
      )
)
LIMIT 1;

-- name: connected
SELECT id FROM instances WHERE role = :role AND status = 'online' AND server IS NOT NULL LIMIT 1;

-- name: next_over
SELECT min(wait_until) - now_us() AS wait_us FROM triggers
WHERE finished_at IS NULL AND instance_id IS NULL;

-- name: give
UPDATE triggers SET
    instance_id = :instance_id, reason = NULL,
    -- what is taken back from this one may go to another even after its grace (JOB-4)
    wait_until = CASE WHEN wait_until > now_us() + :repeat_us THEN wait_until ELSE now_us() + :repeat_us END
WHERE id = :id AND status = 'pending' AND instance_id IS NULL
RETURNING id;

-- name: miss
UPDATE triggers SET status = 'missed', reason = :reason, payload = NULL, finished_at = now_us()
WHERE id = :id AND status = 'pending' AND instance_id IS NULL
RETURNING id;

-- name: to_push
SELECT
    t.id, t.job_id, t.nominal_fire_at, t.dedup_key, t.payload, t.pushes, t.instance_id, i.epoch, j.slug AS job
FROM instances AS i
JOIN triggers AS t ON t.instance_id = i.id AND t.finished_at IS NULL
JOIN jobs AS j ON j.id = t.job_id
WHERE i.server = :server AND i.status = 'online' AND t.status = 'pending'
ORDER BY t.nominal_fire_at, t.id
LIMIT :limit;

-- name: push
-- rows: id text, instance_id text, epoch int, server text
UPDATE triggers SET status = 'pushed', epoch = :epoch, pushes = pushes + 1, pushed_at = now_us()
FROM @rows
WHERE id = :id AND status = 'pending' AND instance_id = :instance_id
  AND EXISTS (
    SELECT 1 FROM instances AS i
    WHERE i.id = :instance_id AND i.epoch = :epoch AND i.server = :server AND i.status = 'online'
  )
RETURNING id;

-- name: acknowledge
UPDATE triggers SET status = 'acknowledged', acknowledged_at = now_us(), epoch = :epoch
WHERE id = :id AND status = 'pushed' AND instance_id = :instance_id
  AND EXISTS (SELECT 1 FROM instances AS i WHERE i.id = :instance_id AND i.epoch = :epoch)
RETURNING id;

-- name: finish
UPDATE triggers SET
    status = :status, reason = :reason, note = :note, finished_at = now_us(), payload = NULL, lost_after = NULL,
    acknowledged_at = coalesce(acknowledged_at, now_us())
WHERE id = :id AND status IN ('pushed', 'acknowledged') AND instance_id = :instance_id
  AND EXISTS (SELECT 1 FROM instances AS i WHERE i.id = :instance_id AND i.epoch = :epoch)
RETURNING id;

-- name: take_back
UPDATE triggers SET
    status = 'pending', taken_from = instance_id, instance_id = NULL, epoch = NULL, reason = NULL,
    pushes = pushes - :unsent
WHERE id = :id AND status = :status AND instance_id = :instance_id AND coalesce(epoch, 0) = :epoch
RETURNING id;

-- name: lose
UPDATE triggers SET status = 'failed', reason = :reason, payload = NULL, lost_after = NULL, finished_at = now_us()
WHERE id = :id AND status = :status AND instance_id = :instance_id AND epoch = :epoch
RETURNING id;

-- name: held
SELECT t.id, t.job_id, t.nominal_fire_at, t.status, t.instance_id, coalesce(t.epoch, 0) AS epoch, t.pushes
FROM triggers AS t
WHERE t.instance_id = :instance_id AND t.finished_at IS NULL
ORDER BY t.id;

-- name: keep
-- the instance has come back and may still have it; if it says so, that is an acknowledgement too (JOB-5)
UPDATE triggers SET
    status = 'acknowledged', acknowledged_at = coalesce(acknowledged_at, now_us()), epoch = :epoch,
    lost_after = now_us() + CAST(:lost_us AS BIGINT)
WHERE id = :id AND instance_id = :instance_id AND status IN ('pushed', 'acknowledged')
  AND EXISTS (SELECT 1 FROM instances AS i WHERE i.id = :instance_id AND i.epoch = :epoch)
RETURNING id;

-- name: gone
UPDATE triggers SET lost_after = now_us() + :lost_us
WHERE id = :id AND status = 'acknowledged' AND instance_id = :instance_id AND epoch = :epoch
  AND (lost_after IS NULL OR lost_after > now_us() + :lost_us)
RETURNING id;

-- name: adrift
-- held by an instance that is not connected any more, or under a connection that a newer one has replaced
SELECT t.id, t.job_id, t.nominal_fire_at, t.status, t.instance_id, coalesce(t.epoch, 0) AS epoch, t.pushes
FROM triggers AS t LEFT JOIN instances AS i ON i.id = t.instance_id
WHERE t.finished_at IS NULL AND t.instance_id IS NOT NULL
  AND (t.lost_after IS NULL OR t.lost_after > now_us() + :lost_us)
  AND (
    i.server IS NULL
    OR (t.status = 'pending' AND i.status <> 'online')
    -- a connection that has just begun says in its hello what its instance still has
    OR (t.status IN ('pushed', 'acknowledged') AND t.epoch <> i.epoch AND i.connected_at <= now_us() - :hello_us)
  )
-- in the order of the index of what is held: by id the whole table would be walked
ORDER BY t.instance_id, t.id
LIMIT :limit;

-- name: unacknowledged
SELECT t.id, t.job_id, t.nominal_fire_at, t.status, t.instance_id, t.epoch, t.pushes, now_us() - t.pushed_at AS age_us
FROM instances AS i JOIN triggers AS t ON t.instance_id = i.id AND t.finished_at IS NULL
WHERE i.server = :server AND t.status = 'pushed' AND t.epoch = i.epoch
ORDER BY t.pushed_at, t.id
LIMIT :limit;

-- name: forlorn
SELECT t.id, t.job_id, t.nominal_fire_at, t.status, t.instance_id, t.epoch, t.pushes
FROM triggers AS t
WHERE t.lost_after <= now_us()
  -- right after a clock jump nothing that looks gone for long is taken (RUN-5b)
  AND (CAST(:calm_us AS BIGINT) IS NULL OR :lost_us < :calm_us)
ORDER BY t.lost_after, t.id
LIMIT :limit;

-- name: get
SELECT * FROM triggers WHERE id = :id;

-- name: page
SELECT * FROM triggers
WHERE job_id = :job_id AND nominal_fire_at < :before
  AND (CAST(:status AS TEXT) IS NULL OR status = :status)
ORDER BY nominal_fire_at DESC
LIMIT :limit;
