-- What became of slots and runs, read: the ledger, the runs with their attempts, their event streams.

-- name: occurrences
SELECT * FROM occurrences
WHERE schedule_id = :schedule_id
  AND nominal_fire_at < :before
  AND nominal_fire_at >= :since
  AND (CAST(:disposition AS TEXT) IS NULL OR disposition = :disposition)
ORDER BY nominal_fire_at DESC
LIMIT :limit;

-- name: occurrence
SELECT * FROM occurrences WHERE schedule_id = :schedule_id AND nominal_fire_at = :nominal_fire_at;

-- name: occurrence_after
SELECT * FROM occurrences
WHERE schedule_id = :schedule_id AND nominal_fire_at > :nominal_fire_at
ORDER BY nominal_fire_at
LIMIT 1;

-- name: covering
SELECT * FROM occurrences
WHERE schedule_id = :schedule_id AND coalesced_count IS NOT NULL
  AND coalesced_last >= :nominal_fire_at AND coalesced_first <= :nominal_fire_at
ORDER BY coalesced_last
LIMIT 1;

-- name: status_before
SELECT at, status, changed_by, reason FROM status_changes
WHERE schedule_id = :schedule_id AND at < :at
ORDER BY seq DESC
LIMIT 1;

-- name: status_from
SELECT at, status, changed_by, reason FROM status_changes
WHERE schedule_id = :schedule_id AND at >= :at
ORDER BY seq
LIMIT 1;

-- name: floor
SELECT occurrences_before FROM retention_floor WHERE id = 1;

-- name: run
SELECT * FROM runs WHERE id = :id;

-- name: runs_in_brief
-- what a list shows of runs: neither questions nor answers, which may be long
SELECT
    id, trigger_kind, status, target_kind, target_id, schedule_id, revision, nominal_fire_at, session_id, scheduled_for,
    owner, fence, attempt, started_at, attempt_at, finished_at, duration_us, cancel_at, half_done, trace_id, model_calls,
    input_tokens, output_tokens, cost, response_preview, error_code, error, invoked_by, api_key_id, source, dedup_key
FROM runs;

-- name: run_status
SELECT id, status, fence, schedule_id, trigger_kind, cancel_at FROM runs WHERE id = :id;

-- name: attempts
SELECT run_id, number, fence, worker, started_at, finished_at, outcome, error_code, error FROM attempts
WHERE run_id IN (SELECT value FROM json_each(:run_ids))
ORDER BY run_id, number, fence;

-- name: runs
@runs_in_brief
WHERE id < :before
  AND (CAST(:status AS TEXT) IS NULL OR status = :status)
  AND (CAST(:trigger_kind AS TEXT) IS NULL OR trigger_kind = :trigger_kind)
  AND (CAST(:target_id AS TEXT) IS NULL OR target_id = :target_id)
ORDER BY id DESC
LIMIT :limit;

-- name: scheduled_runs
SELECT r.* FROM occurrences AS o
JOIN (
@runs_in_brief
) AS r ON r.id = o.run_id
WHERE o.schedule_id = :schedule_id
  AND o.nominal_fire_at < :before
  AND o.run_id IS NOT NULL
  AND (CAST(:status AS TEXT) IS NULL OR r.status = :status)
ORDER BY o.nominal_fire_at DESC
LIMIT :limit;

-- name: unscheduled_runs
@runs_in_brief
WHERE schedule_id = :schedule_id
  AND nominal_fire_at IS NULL
  AND id < :before
  AND (CAST(:status AS TEXT) IS NULL OR status = :status)
ORDER BY id DESC
LIMIT :limit;

-- name: run_events
SELECT seq, at, kind, data FROM run_events WHERE run_id = :run_id AND seq > :after ORDER BY seq LIMIT :limit;

-- name: closed_as
-- what ended so, after so long to the microsecond, under that fence, was closed by that very write
SELECT id FROM runs
WHERE id = :id AND owner = :owner AND fence = :fence AND finished_at IS NOT NULL AND status = :status
  AND duration_us = :duration_us;

-- name: tried_as
SELECT run_id FROM attempts WHERE run_id = :id AND number = :attempt AND fence = :fence AND outcome = :outcome;
