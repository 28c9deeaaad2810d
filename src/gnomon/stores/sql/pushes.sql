-- Attempts of runs that are pushed to instances: every write by an instance carries the fence of its push (RUN-6, TGT-1).

-- name: supersede
-- whoever worked on an earlier attempt is told that it is not his any more
UPDATE run_pushes SET
    status = 'withdrawn', withdrawal = CASE WHEN pushes > 0 AND instance_id IS NOT NULL THEN 'revoke' END,
    frame = '', finished_at = now_us()
WHERE run_id = :run_id AND node = :node AND fence < :fence AND finished_at IS NULL;

-- name: open
INSERT INTO run_pushes (run_id, node, fence, role, status, frame, created_at)
VALUES (:run_id, :node, :fence, :role, 'waiting', :frame, now_us())
ON CONFLICT (run_id, node, fence) DO NOTHING;

-- name: give
UPDATE run_pushes SET status = 'pending', instance_id = :instance_id, epoch = :epoch
WHERE run_id = :run_id AND node = :node AND fence = :fence AND status = 'waiting'
RETURNING run_id;

-- name: standing
SELECT run_id, node, fence, role, status, output, usage, error_code, error, retryable FROM run_pushes
WHERE run_id IN (SELECT value FROM json_each(:ids))
ORDER BY created_at, run_id, node;

-- name: to_push
SELECT p.run_id, p.node, p.fence, p.frame, p.pushes, p.instance_id, p.epoch
FROM instances AS i
JOIN run_pushes AS p ON p.instance_id = i.id AND p.epoch = i.epoch AND p.finished_at IS NULL
WHERE i.server = :server AND p.status = 'pending'
ORDER BY p.created_at, p.run_id, p.node
LIMIT :limit;

-- name: push
-- rows: run_id text, node text, fence int, epoch int
UPDATE run_pushes SET status = 'pushed', pushes = pushes + 1, pushed_at = now_us()
FROM @rows
WHERE run_pushes.run_id = :run_id AND run_pushes.node = :node AND run_pushes.fence = :fence
  AND run_pushes.epoch = :epoch AND status = 'pending'
RETURNING run_pushes.run_id, run_pushes.node, run_pushes.fence;

-- name: unacknowledged
SELECT DISTINCT p.instance_id, p.epoch
FROM instances AS i
JOIN run_pushes AS p ON p.instance_id = i.id AND p.epoch = i.epoch AND p.finished_at IS NULL
WHERE i.server = :server AND p.status = 'pushed' AND p.pushed_at <= now_us() - :patience_us;

-- name: acknowledge
UPDATE run_pushes SET status = 'acknowledged', acknowledged_at = coalesce(acknowledged_at, now_us())
WHERE run_id = :run_id AND node = :node AND fence = :fence AND instance_id = :instance_id
  AND status IN ('pushed', 'acknowledged')
RETURNING run_id;

-- name: answer
UPDATE run_pushes SET
    status = :status, output = :output, usage = :usage, error_code = :error_code, error = :error,
    retryable = :retryable, frame = '', finished_at = now_us()
WHERE run_id = :run_id AND node = :node AND fence = :fence AND instance_id = :instance_id
  AND status IN ('pushed', 'acknowledged')
RETURNING run_id;

-- name: like
-- every attempt of one run, or of one node
SELECT fence, status, instance_id, withdrawal FROM run_pushes WHERE run_id = :run_id AND node = :node
ORDER BY fence;

-- name: withdraw
UPDATE run_pushes SET
    status = 'withdrawn', withdrawal = CASE WHEN pushes > 0 AND instance_id IS NOT NULL THEN :withdrawal END,
    frame = '', finished_at = now_us()
WHERE run_id = :run_id AND node = :node AND fence = :fence AND finished_at IS NULL
RETURNING run_id;

-- name: untold
SELECT p.run_id, p.node, p.fence, p.instance_id, i.epoch, p.withdrawal
FROM instances AS i
JOIN run_pushes AS p ON p.instance_id = i.id
WHERE i.server = :server AND p.withdrawal IS NOT NULL AND p.told = 0
LIMIT :limit;

-- name: tell
-- rows: run_id text, node text, fence int
UPDATE run_pushes SET told = 1
FROM @rows
WHERE run_pushes.run_id = :run_id AND run_pushes.node = :node AND run_pushes.fence = :fence;

-- name: release
-- what was never acknowledged over a connection that is over goes to whoever has room (JOB-4)
UPDATE run_pushes SET status = 'waiting', instance_id = NULL, epoch = NULL
WHERE instance_id = :instance_id AND epoch <= :epoch AND finished_at IS NULL AND status IN ('pending', 'pushed')
RETURNING run_id;

-- name: lose
-- what was acknowledged may have been done: it is not given to anybody else
UPDATE run_pushes SET
    status = 'failed', error_code = 'unreachable', error = :error, retryable = 1, frame = '', finished_at = now_us()
WHERE instance_id = :instance_id AND epoch <= :epoch AND finished_at IS NULL AND status = 'acknowledged'
RETURNING run_id;

-- name: held
SELECT run_id, node, fence, status, epoch FROM run_pushes
WHERE instance_id = :instance_id AND finished_at IS NULL AND epoch < :epoch;

-- name: adopt
-- rows: run_id text, node text, fence int, instance_id text, epoch int
UPDATE run_pushes SET
    status = 'acknowledged', acknowledged_at = coalesce(acknowledged_at, now_us()), epoch = :epoch
FROM @rows
WHERE run_pushes.run_id = :run_id AND run_pushes.node = :node AND run_pushes.fence = :fence
  AND run_pushes.instance_id = :instance_id AND status IN ('pushed', 'acknowledged')
RETURNING run_pushes.run_id;

-- name: usage
UPDATE run_pushes SET usage = :usage
WHERE run_id = :run_id AND node = :node AND fence = :fence AND instance_id = :instance_id AND finished_at IS NULL
RETURNING run_id;

-- name: forsaken
SELECT DISTINCT p.instance_id, p.epoch
FROM run_pushes AS p JOIN instances AS i ON i.id = p.instance_id
WHERE p.finished_at IS NULL AND p.status = 'acknowledged' AND i.status = 'offline'
  AND i.last_heartbeat_at <= now_us() - :timeout_us
LIMIT :limit;

-- name: to_sweep
SELECT 1 AS found FROM run_pushes
WHERE finished_at IS NULL OR output IS NOT NULL OR error IS NOT NULL OR finished_at < now_us() - :older_us
LIMIT 1;

-- name: blank
-- the answer has gone into the session, where it can be erased; here it was on its way
UPDATE run_pushes SET output = NULL, error = NULL
WHERE (output IS NOT NULL OR error IS NOT NULL) AND finished_at IS NOT NULL
  AND NOT EXISTS (
    SELECT 1 FROM runs WHERE runs.id = run_pushes.run_id AND runs.fence = run_pushes.fence AND runs.status = 'running'
  )
RETURNING run_id;

-- name: abandon
-- the run is over, or held under another fence: nobody waits for these any more
UPDATE run_pushes SET
    status = 'withdrawn', withdrawal = CASE WHEN pushes > 0 AND instance_id IS NOT NULL THEN 'revoke' END,
    frame = '', finished_at = now_us()
WHERE finished_at IS NULL
  AND NOT EXISTS (
    SELECT 1 FROM runs WHERE runs.id = run_pushes.run_id AND runs.fence = run_pushes.fence AND runs.status = 'running'
  )
RETURNING run_id;

-- name: clean
DELETE FROM run_pushes WHERE (run_id, node, fence) IN (
    SELECT run_id, node, fence FROM run_pushes WHERE finished_at < now_us() - :older_us ORDER BY finished_at LIMIT :limit
)
RETURNING run_id;
