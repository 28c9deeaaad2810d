-- Sessions as people read and erase them; the turns themselves are written with the runs (RUN-9, RUN-12).

-- name: find
-- a session is there by its turns, or by the row that a schedule's own has before the first of them
SELECT
    coalesce((SELECT created_at FROM sessions WHERE id = :id), min(created_at)) AS created_at,
    count(*) AS turn_count, max(coalesce(answered_at, created_at)) AS last_at
FROM turns WHERE session_id = :id
HAVING count(*) > 0 OR EXISTS (SELECT 1 FROM sessions WHERE id = :id);

-- name: turns
SELECT run_id, query, output, created_at, answered_at FROM turns
WHERE session_id = :id AND run_id > :after
ORDER BY run_id
LIMIT :limit;

-- name: unfinished
SELECT id FROM runs
WHERE id IN (SELECT run_id FROM turns WHERE session_id = :id) AND finished_at IS NULL
ORDER BY id LIMIT 1;

-- name: erase_links
UPDATE occurrences SET links_erased_at = now_us(), run_id = NULL, session_id = NULL
WHERE (schedule_id, nominal_fire_at) IN (
    SELECT r.schedule_id, r.nominal_fire_at FROM turns AS t JOIN runs AS r ON r.id = t.run_id
    WHERE t.session_id = :id AND r.nominal_fire_at IS NOT NULL
) AND disposition = 'fired' AND links_erased_at IS NULL;

-- name: erase_events
DELETE FROM run_events WHERE run_id IN (SELECT run_id FROM turns WHERE session_id = :id);

-- name: erase_checkpoints
DELETE FROM checkpoints WHERE run_id IN (SELECT run_id FROM turns WHERE session_id = :id);

-- name: erase_attempts
UPDATE attempts SET error = NULL WHERE run_id IN (SELECT run_id FROM turns WHERE session_id = :id);

-- name: erase_last_errors
-- before the runs: what a schedule says of its last failure is the text of one of them
UPDATE schedules SET last_error = NULL
WHERE id IN (SELECT r.schedule_id FROM turns AS t JOIN runs AS r ON r.id = t.run_id WHERE t.session_id = :id)
  AND last_error IN (SELECT r.error FROM turns AS t JOIN runs AS r ON r.id = t.run_id WHERE t.session_id = :id);

-- name: erase_runs
-- the empty text, since NULL stands for the session that a run has of its own
UPDATE runs SET session_id = '', response_preview = NULL, error = NULL
WHERE id IN (SELECT run_id FROM turns WHERE session_id = :id);

-- name: erase_turns
DELETE FROM turns WHERE session_id = :id;

-- name: erase
DELETE FROM sessions WHERE id = :id RETURNING id;
