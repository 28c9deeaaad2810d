-- The numbers of the overview, and usage summed. Each is read by an index, or from no more rows than are told (UI-1).

-- name: schedules
SELECT status, count(*) AS how_many FROM schedules WHERE deleted_at IS NULL GROUP BY status;

-- name: jobs
SELECT
    count(*) AS all_jobs, CAST(coalesce(sum(enabled), 0) AS BIGINT) AS enabled, count(error) AS set_aside
FROM jobs WHERE deleted_at IS NULL;

-- name: instances
SELECT role, status, count(*) AS how_many FROM instances GROUP BY role, status ORDER BY role, status;

-- name: processes
SELECT count(*) AS how_many FROM processes
WHERE stopped_at IS NULL AND heartbeat_at > now_us() - :timeout_us;

-- name: queue
SELECT
    (SELECT count(*) FROM runs WHERE claimable_at IS NOT NULL) AS queued,
    (SELECT count(*) FROM runs WHERE waits_for IS NOT NULL AND finished_at IS NULL) AS waiting,
    (SELECT count(*) FROM runs WHERE lease_until IS NOT NULL) AS running,
    (SELECT count(*) FROM runs WHERE priority IN (0, 10) AND claimable_at <= now_us() - :late_us) AS late_runs,
    (SELECT count(*) FROM schedules WHERE status = 'active' AND next_fire_at <= now_us() - :late_us) AS late_slots,
    (SELECT count(*) FROM jobs WHERE next_fire_at <= now_us() - :late_us) AS late_jobs,
    (SELECT count(*) FROM triggers WHERE finished_at IS NULL AND instance_id IS NULL) AS waiting_triggers;

-- name: runs_ended
SELECT
    status, count(*) AS looked_at,
    CAST(sum(CASE WHEN finished_at >= :week THEN 1 ELSE 0 END) AS BIGINT) AS this_week,
    CAST(sum(CASE WHEN finished_at >= :today THEN 1 ELSE 0 END) AS BIGINT) AS today
FROM (SELECT status, finished_at FROM runs WHERE id >= :from_id ORDER BY id DESC LIMIT :most) AS latest
GROUP BY status;

-- name: triggers_ended
SELECT
    status, count(*) AS looked_at,
    CAST(sum(CASE WHEN finished_at >= :week THEN 1 ELSE 0 END) AS BIGINT) AS this_week,
    CAST(sum(CASE WHEN finished_at >= :today THEN 1 ELSE 0 END) AS BIGINT) AS today
FROM (SELECT status, finished_at FROM triggers WHERE id >= :from_id ORDER BY id DESC LIMIT :most) AS latest
GROUP BY status;

-- name: expired
SELECT subject_kind, count(*) AS how_many FROM audit
WHERE action = 'EXPIRE' AND at >= :today
GROUP BY subject_kind;

-- name: tasks_done
SELECT count(*) AS how_many FROM tasks WHERE status = 'done' AND updated_at >= :week;

-- name: tasks_open
SELECT role, 'claimable' AS state, count(*) AS how_many FROM tasks
WHERE status = 'backlog' AND unmet = 0
GROUP BY role
UNION ALL
SELECT role, CASE WHEN status = 'backlog' THEN 'gated' ELSE status END AS state, count(*) AS how_many FROM tasks
WHERE status IN ('in_review', 'blocked') OR (status = 'backlog' AND unmet > 0)
GROUP BY role, status
UNION ALL
SELECT t.role, 'in_progress' AS state, count(*) AS how_many FROM task_locks AS l
JOIN tasks AS t ON t.id = l.task_id
GROUP BY t.role;

-- name: usage
-- what is not asked for stands empty, and so is one group with all else
SELECT g.*, coalesce(a.slug, t.slug, '') AS slug
FROM (
    SELECT
        CASE WHEN CAST(:by_day AS BIGINT) = 1 THEN r.finished_at / 86400000000 ELSE 0 END AS day,
        CASE WHEN CAST(:by_target AS BIGINT) = 1 THEN r.target_kind ELSE '' END AS target_kind,
        CASE WHEN CAST(:by_target AS BIGINT) = 1 THEN r.target_id ELSE '' END AS target_id,
        CASE WHEN CAST(:by_principal AS BIGINT) = 1 THEN coalesce(r.invoked_by, s.invoke_as, '') ELSE '' END
            AS principal,
        count(*) AS runs,
        CAST(sum(r.model_calls) AS BIGINT) AS model_calls,
        CAST(coalesce(sum(r.input_tokens), 0) AS BIGINT) AS input_tokens,
        CAST(coalesce(sum(r.output_tokens), 0) AS BIGINT) AS output_tokens,
        coalesce(sum(r.cost), 0.0) AS cost
    FROM runs AS r
    LEFT JOIN schedules AS s ON s.id = r.schedule_id
    WHERE r.model_calls IS NOT NULL AND r.finished_at >= :since AND r.finished_at < :until
    GROUP BY 1, 2, 3, 4
    ORDER BY 1, 2, 3, 4
    LIMIT :limit OFFSET :skip
) AS g
LEFT JOIN agents AS a ON g.target_kind = 'agent' AND a.id = g.target_id
LEFT JOIN teams AS t ON g.target_kind = 'team' AND t.id = g.target_id
ORDER BY g.day, g.target_kind, g.target_id, g.principal;
