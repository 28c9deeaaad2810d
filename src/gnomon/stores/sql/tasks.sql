-- The board: tasks, what each needs, who holds which. Every write by a holder carries task, fence and holder (BRD-2).
--
-- Where writers come side by side, whoever writes a need holds the task that is needed (FOR SHARE), and whoever moves a
-- task to or from done has its row before the next statement looks for those that need it: no gate is left out.

-- name: insert
INSERT INTO tasks (
    id, role, title, body, priority, status, unmet, dedup_key, dedup_mark, created_at, created_by, updated_at
)
VALUES (
    :id, :role, :title, :body, :priority, 'backlog', :unmet, :dedup_key, :dedup_mark, now_us(), :created_by, now_us()
)
ON CONFLICT (dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING
RETURNING id;

-- name: under_key
SELECT id, dedup_mark FROM tasks WHERE dedup_key = :dedup_key;

-- name: records
SELECT
    t.*, l.instance_id, i.name AS instance, l.fence AS held_fence, l.claimed_at, l.expires_at,
    (
        SELECT string_agg(p.prerequisite_id || ' ' || q.status, ',' ORDER BY p.prerequisite_id)
        FROM task_prerequisites AS p
        JOIN tasks AS q ON q.id = p.prerequisite_id
        WHERE p.task_id = t.id
    ) AS needs
FROM tasks AS t
LEFT JOIN task_locks AS l ON l.task_id = t.id
LEFT JOIN instances AS i ON i.id = l.instance_id
WHERE t.id IN (SELECT value FROM json_each(:ids));

-- name: page
SELECT id FROM tasks
WHERE id > :after
  AND (CAST(:role AS TEXT) IS NULL OR role = :role)
  AND (CAST(:status AS TEXT) IS NULL OR status = :status)
ORDER BY id
LIMIT :limit;

-- name: page_held
SELECT t.id FROM task_locks AS l
JOIN tasks AS t ON t.id = l.task_id
JOIN instances AS i ON i.id = l.instance_id
WHERE (i.id = :holder OR i.name = :holder)
  AND t.id > :after
  AND (CAST(:role AS TEXT) IS NULL OR t.role = :role)
  AND (CAST(:status AS TEXT) IS NULL OR t.status = :status)
ORDER BY t.id
LIMIT :limit;

-- name: hold
-- to the end of the transaction nobody else claims, edits or deletes them; in one order, so that nobody waits in a circle
SELECT id FROM tasks WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY id
--postgres: FOR UPDATE
;

-- name: statuses
SELECT id, status FROM tasks WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY id
--postgres: FOR SHARE
;

-- name: update
UPDATE tasks SET
    role = :role, title = :title, body = :body, priority = :priority, status = :status, unmet = coalesce(CAST(:unmet AS BIGINT), unmet),
    half_done = CASE WHEN :status = status OR :status = 'backlog' THEN half_done ELSE 0 END, updated_at = now_us()
WHERE id = :id AND status <> 'in_progress'
RETURNING id;

-- name: delete
DELETE FROM tasks WHERE id = :id AND status <> 'in_progress'
RETURNING id;

-- name: need
-- rows: task_id text, prerequisite_id text
INSERT INTO task_prerequisites (task_id, prerequisite_id) SELECT :task_id, :prerequisite_id FROM @rows;

-- name: need_nothing
DELETE FROM task_prerequisites WHERE task_id = :task_id;

-- name: hold_needs
-- of two who write needs at once, the second sees what the first wrote: else two halves could close one cycle (BRD-8)
--sqlite: SELECT 1;
--postgres: LOCK TABLE task_prerequisites IN SHARE ROW EXCLUSIVE MODE;

-- name: needs_above
WITH RECURSIVE above (id) AS (
    SELECT id FROM tasks WHERE id IN (SELECT value FROM json_each(:ids))
    UNION
    SELECT p.prerequisite_id FROM above CROSS JOIN task_prerequisites AS p WHERE p.task_id = above.id
)
SELECT p.task_id, p.prerequisite_id FROM above CROSS JOIN task_prerequisites AS p WHERE p.task_id = above.id;

-- name: dependants
SELECT task_id FROM task_prerequisites WHERE prerequisite_id = :id ORDER BY task_id LIMIT :limit;

-- name: open_gates
UPDATE tasks SET unmet = unmet - 1
WHERE id IN (SELECT task_id FROM task_prerequisites WHERE prerequisite_id = :id)
--postgres: AND (SELECT count(*) FROM (
--postgres:   SELECT 1 FROM tasks WHERE id IN (SELECT task_id FROM task_prerequisites WHERE prerequisite_id = :id)
--postgres:   ORDER BY id FOR UPDATE
--postgres: ) AS held) >= 0
;

-- name: close_gates
UPDATE tasks SET unmet = unmet + 1
WHERE id IN (SELECT task_id FROM task_prerequisites WHERE prerequisite_id = :id)
--postgres: AND (SELECT count(*) FROM (
--postgres:   SELECT 1 FROM tasks WHERE id IN (SELECT task_id FROM task_prerequisites WHERE prerequisite_id = :id)
--postgres:   ORDER BY id FOR UPDATE
--postgres: ) AS held) >= 0
;

-- name: waiting
-- in the order of the claim, so that the same index serves it where there is nothing too
SELECT 1 AS found FROM tasks WHERE role = :role AND status = 'backlog' AND unmet = 0
ORDER BY priority DESC, id
LIMIT 1;

-- name: depths
SELECT role, count(*) AS depth FROM tasks WHERE status = 'backlog' AND unmet = 0 GROUP BY role ORDER BY role;

-- name: claim
-- what is being claimed elsewhere is passed over, and nobody waits; the primary key has room for one
INSERT INTO task_locks (task_id, instance_id, fence, claim_id, claimed_by, claimed_at, renewed_at, expires_at)
SELECT id, :instance_id, fence + 1, :claim_id, :claimed_by, now_us(), now_us(), now_us() + :lock_us
FROM tasks
WHERE role = :role AND status = 'backlog' AND unmet = 0
ORDER BY priority DESC, id
LIMIT :limit
--postgres: FOR UPDATE SKIP LOCKED
ON CONFLICT (task_id) DO NOTHING
RETURNING task_id, fence, expires_at;

-- name: begin
-- rows: task_id text, fence int
UPDATE tasks SET status = 'in_progress', fence = :fence, updated_at = now_us()
FROM @rows
WHERE id = :task_id AND status = 'backlog';

-- name: under_claim
SELECT task_id, fence, expires_at FROM task_locks WHERE instance_id = :instance_id AND claim_id = :claim_id;

-- name: renew
UPDATE task_locks SET renewed_at = now_us(), expires_at = now_us() + :lock_us
WHERE task_id = :task_id AND fence = :fence
  AND (CAST(:instance AS TEXT) IS NOT NULL OR claimed_by = :actor)
  AND (CAST(:instance AS TEXT) IS NULL OR EXISTS (
    SELECT 1 FROM instances AS i WHERE i.id = task_locks.instance_id AND i.name = :instance
  ))
RETURNING expires_at, (SELECT i.name FROM instances AS i WHERE i.id = task_locks.instance_id) AS instance,
    (SELECT i.role FROM instances AS i WHERE i.id = task_locks.instance_id) AS role;

-- name: release
DELETE FROM task_locks
WHERE task_id = :task_id AND fence = :fence
  AND (CAST(:instance AS TEXT) IS NOT NULL OR claimed_by = :actor)
  AND (CAST(:instance AS TEXT) IS NULL OR EXISTS (
    SELECT 1 FROM instances AS i WHERE i.id = task_locks.instance_id AND i.name = :instance
  ))
RETURNING (SELECT i.name FROM instances AS i WHERE i.id = task_locks.instance_id) AS instance,
    (SELECT i.role FROM instances AS i WHERE i.id = task_locks.instance_id) AS role;

-- name: release_by_force
DELETE FROM task_locks WHERE task_id = :task_id
RETURNING fence, (SELECT i.name FROM instances AS i WHERE i.id = task_locks.instance_id) AS instance;

-- name: note
UPDATE tasks SET last_report = :last_report, reported_at = now_us()
WHERE id = :id AND fence = :fence AND status = 'in_progress';

-- name: move
UPDATE tasks SET
    status = :status, role = coalesce(CAST(:role AS TEXT), role), updated_at = now_us(),
    -- given back is not looked through: the mark stays until somebody says how it stands
    half_done = CASE WHEN :half_done = 1 THEN 1 WHEN :status = 'backlog' THEN half_done ELSE 0 END,
    last_report = coalesce(CAST(:last_report AS TEXT), last_report),
    reported_at = CASE WHEN CAST(:last_report AS TEXT) IS NULL THEN reported_at ELSE now_us() END
WHERE id = :id AND fence = :fence AND status = 'in_progress'
RETURNING id;

-- name: expired
SELECT l.task_id, l.fence, l.expires_at, l.instance_id, i.name AS instance,
    CASE WHEN l.expires_at <= now_us() THEN 'lease' ELSE 'heartbeat' END AS why
FROM task_locks AS l
LEFT JOIN instances AS i ON i.id = l.instance_id
WHERE
    -- right after a clock jump nothing that looks expired is taken (RUN-5b)
    (l.expires_at <= now_us() AND (CAST(:calm_us AS BIGINT) IS NULL OR l.expires_at - l.renewed_at < :calm_us))
    OR (
        i.last_heartbeat_at <= now_us() - :timeout_us
        AND (CAST(:calm_us AS BIGINT) IS NULL OR :timeout_us < :calm_us)
    )
ORDER BY l.expires_at, l.task_id
LIMIT :limit;

-- name: next_end
SELECT min(expires_at) - now_us() AS wait_us FROM task_locks WHERE expires_at > now_us();

-- name: expire
-- as it was seen: one that was renewed meanwhile has another end
-- rows: task_id text, fence int, expires_at int
DELETE FROM task_locks
WHERE (task_id, fence, expires_at) IN (SELECT :task_id, :fence, :expires_at FROM @rows)
RETURNING task_id;

-- name: put_back
-- rows: task_id text, fence int
UPDATE tasks SET status = 'backlog', half_done = 1, updated_at = now_us()
FROM @rows
WHERE id = :task_id AND fence = :fence AND status = 'in_progress';
