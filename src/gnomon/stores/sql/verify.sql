-- A whole database read in pages, with what belongs to each row beside it, to be judged by its invariants (OPS-7).

-- name: facts
SELECT
    now_us() AS now, occurrences_before, audit_before, runs_before,
    (SELECT count(*) FROM audit WHERE action = 'CLOCK_JUMP' AND detail LIKE '%stalled%false%') AS jumps,
    (SELECT zone_data FROM processes ORDER BY started_at DESC, id DESC LIMIT 1) AS zone_data,
    (SELECT max(at) FROM audit WHERE action = 'REALIGN' AND detail LIKE '%zone data%') AS zone_data_at
FROM retention_floor WHERE id = 1;

-- name: counts
SELECT
    (SELECT count(*) FROM schedules) AS schedules, (SELECT count(*) FROM occurrences) AS occurrences,
    (SELECT count(*) FROM status_changes) AS status_changes, (SELECT count(*) FROM runs) AS runs,
    (SELECT count(*) FROM attempts) AS attempts, (SELECT count(*) FROM checkpoints) AS checkpoints, (SELECT count(*) FROM run_events) AS events,
    (SELECT count(*) FROM api_keys) AS api_keys, (SELECT CAST(coalesce(sum(how_many), 0) AS BIGINT) FROM audit) AS audit,
    (SELECT count(*) FROM tasks) AS tasks, (SELECT count(*) FROM task_prerequisites) AS task_prerequisites,
    (SELECT count(*) FROM task_locks) AS task_locks, (SELECT count(*) FROM jobs) AS jobs,
    (SELECT count(*) FROM triggers) AS triggers;

-- name: schedules
SELECT
    s.*,
    CASE WHEN s.target_kind = 'agent' THEN a.id ELSE t.id END AS living_target,
    f.schedule_id AS flight_schedule, f.status AS flight_status,
    CASE WHEN f.finished_at IS NULL THEN f.id END AS unfinished_run_id,
    w.schedule_id AS waiting_schedule, w.status AS waiting_status, w.waits_for AS waiting_for,
    (SELECT count(*) FROM revisions AS v WHERE v.schedule_id = s.id) AS revisions,
    (SELECT max(v.revision) FROM revisions AS v WHERE v.schedule_id = s.id) AS last_revision,
    (SELECT o.nominal_fire_at FROM occurrences AS o
     WHERE o.schedule_id = s.id AND o.nominal_fire_at = s.recorded_until) AS recorded,
    c.updated_at AS calendar_at
FROM schedules AS s
LEFT JOIN agents AS a ON s.target_kind = 'agent' AND a.id = s.target_id AND a.deleted_at IS NULL
LEFT JOIN teams AS t ON s.target_kind = 'team' AND t.id = s.target_id AND t.deleted_at IS NULL
LEFT JOIN runs AS f ON f.id = s.in_flight_run_id
LEFT JOIN runs AS w ON w.id = s.waiting_run_id
LEFT JOIN calendars AS c ON c.slug = s.calendar
WHERE s.id > :after
ORDER BY s.id
LIMIT :limit;

-- name: status_changes
SELECT seq, at, status, changed_by, reason FROM status_changes
WHERE schedule_id = :schedule_id
ORDER BY seq;

-- name: revisions
SELECT revision, created_at FROM revisions
WHERE schedule_id = :schedule_id
ORDER BY revision;

-- name: occurrences
SELECT
    o.schedule_id, o.nominal_fire_at, o.revision, o.disposition, o.reason, o.coalesced_first, o.coalesced_last,
    o.coalesced_count, o.run_id, o.session_id, o.links_erased_at, o.created_at,
    r.schedule_id AS run_schedule, r.nominal_fire_at AS run_nominal,
    coalesce(r.session_id, 'ses_' || substr(r.id, 5)) AS run_session
FROM occurrences AS o
LEFT JOIN runs AS r ON r.id = o.run_id
WHERE o.schedule_id = :schedule_id AND o.nominal_fire_at > :after
ORDER BY o.nominal_fire_at
LIMIT :limit;

-- name: ownerless
SELECT o.schedule_id, o.nominal_fire_at FROM occurrences AS o
WHERE o.schedule_id >= :after_id
  AND (o.schedule_id > :after_id OR o.nominal_fire_at > :after)
  AND NOT EXISTS (SELECT 1 FROM schedules AS s WHERE s.id = o.schedule_id)
ORDER BY o.schedule_id, o.nominal_fire_at
LIMIT :limit;

-- name: runs
SELECT
    r.id, r.trigger_kind, r.status, r.schedule_id, r.revision, r.nominal_fire_at, r.session_id, r.claimable_at,
    r.waits_for, r.parallel, r.lease_until, r.owner, r.claim_id, r.fence, r.attempt, r.started_at, r.finished_at,
    r.response_preview,
    s.id AS schedule, s.in_flight_run_id, s.waiting_run_id, s.fence AS schedule_fence,
    s.revision AS schedule_revision, s.max_attempts,
    o.disposition, o.run_id AS slot_run_id, o.links_erased_at,
    CASE WHEN r.output IS NULL THEN 0 ELSE 1 END AS answered,
    CASE WHEN r.session_id = '' AND r.query <> '' THEN 1 ELSE 0 END AS still_asked,
    p.id AS process, w.finished_at AS waited_finished_at, w.id AS waited,
    (SELECT count(DISTINCT e.number) FROM attempts AS e
     WHERE e.run_id = r.id AND e.number >= 1 AND e.number < r.attempt) AS kept_attempts,
    (SELECT max(e.number) FROM attempts AS e WHERE e.run_id = r.id) AS last_attempt,
    (SELECT max(e.fence) FROM attempts AS e WHERE e.run_id = r.id) AS attempt_fence,
    (SELECT max(k.fence) FROM checkpoints AS k WHERE k.run_id = r.id) AS checkpoint_fence
FROM runs AS r
LEFT JOIN schedules AS s ON s.id = r.schedule_id
LEFT JOIN occurrences AS o ON o.schedule_id = r.schedule_id AND o.nominal_fire_at = r.nominal_fire_at
LEFT JOIN processes AS p ON p.id = r.owner
LEFT JOIN runs AS w ON w.id = r.waits_for
WHERE r.id > :after
ORDER BY r.id
LIMIT :limit;

-- name: twice_erased
-- runs that share a slot whose record names neither: every other pair is seen at the record
SELECT r.schedule_id, r.nominal_fire_at, min(r.id) AS first_run, max(r.id) AS last_run
FROM occurrences AS o
JOIN runs AS r ON r.schedule_id = o.schedule_id AND r.nominal_fire_at = o.nominal_fire_at
WHERE o.links_erased_at IS NOT NULL
  AND o.schedule_id >= :after_id AND (o.schedule_id > :after_id OR o.nominal_fire_at > :after)
GROUP BY r.schedule_id, r.nominal_fire_at
HAVING count(*) > 1
ORDER BY r.schedule_id, r.nominal_fire_at
LIMIT :limit;

-- name: stray_attempts
SELECT run_id, count(*) AS how_many FROM attempts AS a
WHERE run_id > :after AND NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.id = a.run_id)
GROUP BY run_id ORDER BY run_id
LIMIT :limit;

-- name: stray_checkpoints
SELECT run_id, count(*) AS how_many FROM checkpoints AS a
WHERE run_id > :after AND NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.id = a.run_id)
GROUP BY run_id ORDER BY run_id
LIMIT :limit;

-- name: stray_events
SELECT run_id, count(*) AS how_many FROM run_events AS a
WHERE run_id > :after AND NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.id = a.run_id)
GROUP BY run_id ORDER BY run_id
LIMIT :limit;

-- name: keys_of_nothing
SELECT k.id, k.target_kind, k.target_id FROM api_keys AS k
LEFT JOIN agents AS a ON k.target_kind = 'agent' AND a.id = k.target_id AND a.deleted_at IS NULL
LEFT JOIN teams AS t ON k.target_kind = 'team' AND t.id = k.target_id AND t.deleted_at IS NULL
WHERE k.target_kind IS NOT NULL AND k.revoked_at IS NULL AND a.id IS NULL AND t.id IS NULL AND k.id > :after
ORDER BY k.id
LIMIT :limit;

-- name: audit
SELECT
    a.seq, a.at, a.action, a.subject_kind, a.subject_id, a.fence, a.detail,
    r.id AS run, r.status, r.schedule_id, t.fence AS task_fence, g.status AS trigger_status
FROM (
    SELECT * FROM audit_entries WHERE batch > :after AND seq > :after ORDER BY batch, seq LIMIT :limit
) AS a
LEFT JOIN runs AS r ON a.subject_kind = 'run' AND r.id = a.subject_id
LEFT JOIN tasks AS t ON a.subject_kind = 'task' AND t.id = a.subject_id
LEFT JOIN triggers AS g ON a.subject_kind = 'trigger' AND g.id = a.subject_id
ORDER BY a.seq;

-- name: jobs
SELECT j.*, c.updated_at AS calendar_at,
    (SELECT max(t.nominal_fire_at) FROM triggers AS t WHERE t.job_id = j.id) AS last_recorded
FROM jobs AS j LEFT JOIN calendars AS c ON c.slug = j.calendar
WHERE j.id > :after
ORDER BY j.id
LIMIT :limit;

-- name: triggers
SELECT
    t.id, t.job_id, t.nominal_fire_at, t.status, t.coalesced_first, t.instance_id, t.epoch, t.created_at,
    j.id AS job, i.id AS instance, i.epoch AS instance_epoch
FROM triggers AS t
LEFT JOIN jobs AS j ON j.id = t.job_id
LEFT JOIN instances AS i ON i.id = t.instance_id
WHERE t.job_id >= :after AND (t.job_id > :after OR t.nominal_fire_at > :after_slot)
ORDER BY t.job_id, t.nominal_fire_at
LIMIT :limit;

-- name: tasks
SELECT
    t.id, t.status, t.fence, t.unmet, l.task_id AS locked, l.fence AS lock_fence, l.instance_id, i.id AS instance,
    (SELECT count(*) FROM task_prerequisites AS p
     JOIN tasks AS q ON q.id = p.prerequisite_id
     WHERE p.task_id = t.id AND q.status <> 'done') AS needed
FROM tasks AS t
LEFT JOIN task_locks AS l ON l.task_id = t.id
LEFT JOIN instances AS i ON i.id = l.instance_id
WHERE t.id > :after
ORDER BY t.id
LIMIT :limit;

-- name: needs
-- what is over can be part of no cycle that keeps anything waiting
SELECT p.task_id, p.prerequisite_id, t.id AS task, q.id AS prerequisite
FROM task_prerequisites AS p
LEFT JOIN tasks AS t ON t.id = p.task_id
LEFT JOIN tasks AS q ON q.id = p.prerequisite_id
WHERE p.task_id >= :after AND (p.task_id > :after OR p.prerequisite_id > :after_need)
  AND (t.id IS NULL OR q.id IS NULL OR (t.status <> 'done' AND q.status <> 'done'))
ORDER BY p.task_id, p.prerequisite_id
LIMIT :limit;

-- name: stray_locks
SELECT l.task_id, l.fence FROM task_locks AS l
WHERE l.task_id > :after AND NOT EXISTS (SELECT 1 FROM tasks AS t WHERE t.id = l.task_id)
ORDER BY l.task_id
LIMIT :limit;
