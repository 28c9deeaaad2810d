-- What lies ahead of the loops of a process: each part is the first entry of one index, or nothing (DSP-2, BRD-4).

-- name: ahead
SELECT
    now_us() AS now,
    -- of the dispatcher
    (SELECT min(next_fire_at) FROM schedules WHERE status = 'active' AND next_fire_at IS NOT NULL) AS slot_at,
    -- of the runner
    (SELECT min(claimable_at) FROM runs WHERE priority = 0 AND claimable_at IS NOT NULL) AS asked_run_at,
    (SELECT min(claimable_at) FROM runs WHERE priority = 10 AND claimable_at IS NOT NULL) AS slot_run_at,
    (SELECT min(owner) FROM runs WHERE owner = :process_id AND cancel_at IS NOT NULL AND finished_at IS NULL) AS cancelled,
    -- of jobs and the delivery of their triggers
    (SELECT min(next_fire_at) FROM jobs WHERE next_fire_at IS NOT NULL) AS job_at,
    (SELECT min(wait_until) FROM triggers WHERE finished_at IS NULL AND instance_id IS NULL) AS trigger_waits,
    (SELECT min(instance_id) FROM triggers WHERE finished_at IS NULL AND instance_id IS NOT NULL) AS trigger_held,
    -- of the sweep
    (SELECT min(lease_until) FROM runs WHERE lease_until IS NOT NULL) AS lease_until,
    (SELECT min(status_until) FROM schedules WHERE status_until IS NOT NULL) AS paused_until,
    (SELECT min(role) FROM tasks WHERE status = 'backlog' AND unmet = 0) AS claimable_role,
    (SELECT min(expires_at) FROM task_locks) AS lock_until,
    (SELECT min(last_heartbeat_at) FROM instances WHERE status <> 'offline') AS instance_heard_at,
    (SELECT min(run_id) FROM run_pushes) AS pushed_run;
