-- Schedules as people write and read them; how they come due is in slots.sql.

-- name: insert
INSERT INTO schedules (
    id, name, target_kind, target_id, cadence, unit, every, calendar, anchor_at, query, session_mode, session_id,
    starts_at, ends_at, max_runs, overlap, catch_up, misfire_grace_seconds, timeout_seconds, max_attempts,
    backoff_seconds, backoff_max_seconds, failure_limit, on_lost, jitter_seconds, invoke_as, scopes, dedup_key,
    status, status_by, status_at, revision, next_fire_at, created_at, created_by, updated_at, updated_by
) VALUES (
    :id, :name, :target_kind, :target_id, :cadence, :unit, :every, :calendar, :anchor_at, :query, :session_mode,
    :session_id, :starts_at, :ends_at, :max_runs, :overlap, :catch_up, :misfire_grace_seconds, :timeout_seconds,
    :max_attempts, :backoff_seconds, :backoff_max_seconds, :failure_limit, :on_lost, :jitter_seconds, :invoke_as,
    :scopes, :dedup_key, 'active', :by, :now, 1, :next_fire_at, :now, :by, :now, :by
);

-- name: get
SELECT *, @unfinished_run AS unfinished_run_id FROM schedules WHERE id = :id AND deleted_at IS NULL;

-- name: page
SELECT *, @unfinished_run AS unfinished_run_id FROM schedules
WHERE deleted_at IS NULL
  AND id > :after
  AND (CAST(:status AS TEXT) IS NULL OR status = :status)
  AND (CAST(:target_kind AS TEXT) IS NULL OR target_kind = :target_kind)
  AND (CAST(:target_id AS TEXT) IS NULL OR target_id = :target_id)
  AND (CAST(:name AS TEXT) IS NULL OR name = :name)
ORDER BY id
LIMIT :limit;

-- name: of_target
SELECT *, @unfinished_run AS unfinished_run_id FROM schedules
WHERE target_kind = :target_kind AND target_id = :target_id AND name = :name AND deleted_at IS NULL
ORDER BY id;

-- name: revise
UPDATE schedules SET
    name = :name, target_kind = :target_kind, target_id = :target_id, cadence = :cadence, unit = :unit, every = :every,
    calendar = :calendar, query = :query, session_mode = :session_mode, session_id = :session_id,
    starts_at = :starts_at, ends_at = :ends_at, max_runs = :max_runs, overlap = :overlap, catch_up = :catch_up,
    misfire_grace_seconds = :misfire_grace_seconds, timeout_seconds = :timeout_seconds, max_attempts = :max_attempts,
    backoff_seconds = :backoff_seconds, backoff_max_seconds = :backoff_max_seconds, failure_limit = :failure_limit,
    on_lost = :on_lost, jitter_seconds = :jitter_seconds, invoke_as = :invoke_as, scopes = :scopes,
    dedup_key = :dedup_key,
    status_by = CASE WHEN status = :status THEN status_by ELSE :by END,
    status_at = CASE WHEN status = :status THEN status_at ELSE :now END,
    status_reason = CASE WHEN status = :status THEN status_reason ELSE :status_reason END,
    status_until = CASE WHEN status = :status THEN status_until ELSE NULL END,
    status = :status, revision = revision + 1, next_fire_at = :next_fire_at, updated_at = :now, updated_by = :by
WHERE id = :id AND revision = :revision AND @unfinished_run IS NULL AND deleted_at IS NULL
RETURNING id;

-- name: keep_revision
INSERT INTO revisions (schedule_id, revision, definition, author, created_at)
VALUES (:schedule_id, :revision, :definition, :author, :created_at);

-- name: replaced_revisions
SELECT schedule_id, revision, definition, author, created_at FROM revisions
WHERE schedule_id = :schedule_id AND revision < :before
ORDER BY revision DESC
LIMIT :limit;

-- name: revision_at
SELECT schedule_id, revision, definition, author, created_at FROM revisions
WHERE schedule_id = :schedule_id AND created_at < :at
ORDER BY revision DESC
LIMIT 1;

-- name: revision
SELECT schedule_id, revision, definition, author, created_at FROM revisions
WHERE schedule_id = :schedule_id AND revision = :revision;

-- name: set_status
UPDATE schedules SET
    status = :status, status_by = :by, status_at = now_us(), status_reason = :reason, status_until = :until,
    next_fire_at = :next_fire_at,
    failure_streak = CASE WHEN :clears = 1 THEN 0 ELSE failure_streak END
WHERE id = :id AND status = :from_status AND deleted_at IS NULL
RETURNING id;

-- name: recorded
UPDATE schedules SET recorded_until = :recorded_until WHERE id = :id;

-- name: delete
-- updated_at stays: it says since when the last revision stood
UPDATE schedules SET deleted_at = now_us(), next_fire_at = NULL, updated_by = :by
WHERE id = :id AND @unfinished_run IS NULL AND deleted_at IS NULL
RETURNING id;

-- name: pauses_over
SELECT *, @unfinished_run AS unfinished_run_id FROM schedules
WHERE status_until IS NOT NULL AND status_until <= now_us() AND status = 'paused' AND deleted_at IS NULL
ORDER BY status_until
LIMIT :limit;

-- name: next_pause_end
SELECT min(status_until) - now_us() AS left_us FROM schedules
WHERE status_until IS NOT NULL AND status = 'paused' AND deleted_at IS NULL;

-- name: lock
-- rows: id text, run_id text
UPDATE schedules SET in_flight_run_id = :run_id
FROM @rows
WHERE id = :id AND @unfinished_run IS NULL AND status <> 'disabled' AND deleted_at IS NULL
RETURNING id;

-- name: agent_named
SELECT id, slug FROM agents WHERE (id = :name OR slug = :name) AND deleted_at IS NULL;

-- name: team_named
SELECT id, slug FROM teams WHERE (id = :name OR slug = :name) AND deleted_at IS NULL;

-- name: calendar_named
SELECT slug, updated_at FROM calendars WHERE slug = :slug;

-- name: session
SELECT id, erased_at FROM sessions WHERE id = :id;

-- name: begin_session
INSERT INTO sessions (id, created_at) VALUES (:id, now_us()) ON CONFLICT (id) DO NOTHING;

-- name: recorded_until
SELECT recorded_until FROM schedules WHERE id = :id;

-- name: of_calendar
SELECT *, @unfinished_run AS unfinished_run_id FROM schedules
WHERE calendar = :slug AND status = 'active' AND deleted_at IS NULL AND id > :after
ORDER BY id
LIMIT :limit;

-- name: set_next
UPDATE schedules SET next_fire_at = :next_fire_at WHERE id = :id AND status = 'active' AND deleted_at IS NULL;
