-- Sessions as people read and erase them; what is said in them is written with the runs (RUN-9, RUN-12).

-- name: runs
-- a session that is a run's own is found by the run's id, one that others name by the index; '' is none
SELECT id FROM runs WHERE session_id = :id AND session_id <> ''
UNION ALL
SELECT id FROM runs WHERE id = 'run_' || substr(:id, 5) AND session_id IS NULL AND :id = 'ses_' || substr(id, 5);

-- name: find
-- a session is there by its runs, or by the row that a schedule's own has before the first of them
SELECT
    coalesce((SELECT created_at FROM sessions WHERE id = :id), min(coalesce(created_at, started_at))) AS created_at,
    count(*) AS turn_count,
    max(CASE WHEN output IS NULL THEN coalesce(created_at, started_at) ELSE finished_at END) AS last_at
FROM runs WHERE id IN (
@runs
)
HAVING count(*) > 0 OR EXISTS (SELECT 1 FROM sessions WHERE id = :id);

-- name: turns
-- a page reads no more of what runs share than it shows
SELECT
    id AS run_id, query, output, coalesce(created_at, started_at) AS created_at,
    CASE WHEN output IS NOT NULL THEN finished_at END AS answered_at
FROM (
    SELECT * FROM (
        SELECT id, query, output, created_at, started_at, finished_at FROM runs
        WHERE session_id = :id AND session_id <> '' AND id > :after
        ORDER BY id LIMIT :limit
    ) AS shared
    UNION ALL
    SELECT id, query, output, created_at, started_at, finished_at FROM runs
    WHERE id = 'run_' || substr(:id, 5) AND session_id IS NULL AND :id = 'ses_' || substr(id, 5) AND id > :after
) AS said
ORDER BY id
LIMIT :limit;

-- name: unfinished
SELECT id FROM runs
WHERE id IN (
@runs
) AND finished_at IS NULL
ORDER BY id LIMIT 1;

-- name: erase_links
UPDATE occurrences SET links_erased_at = now_us(), run_id = NULL, session_id = NULL
WHERE (schedule_id, nominal_fire_at) IN (
    SELECT schedule_id, nominal_fire_at FROM runs
    WHERE nominal_fire_at IS NOT NULL AND id IN (
@runs
    )
) AND disposition = 'fired' AND links_erased_at IS NULL;

-- name: erase_events
DELETE FROM run_events WHERE run_id IN (
@runs
);

-- name: erase_checkpoints
DELETE FROM checkpoints WHERE run_id IN (
@runs
);

-- name: erase_attempts
UPDATE attempts SET error = NULL WHERE run_id IN (
@runs
);

-- name: erase_last_errors
-- before the runs: what a schedule says of its last failure is the text of one of them
UPDATE schedules SET last_error = NULL
WHERE (id, last_error) IN (
    SELECT schedule_id, error FROM runs
    WHERE id IN (
@runs
    )
);

-- name: erase_runs
-- the empty text, since NULL stands for the session that a run has of its own
UPDATE runs SET session_id = '', query = '', output = NULL, response_preview = NULL, error = NULL
WHERE id IN (
@runs
);

-- name: erase
DELETE FROM sessions WHERE id = :id RETURNING id;
