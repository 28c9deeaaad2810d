-- Instances: seen, connected, heard of, gone, offline; and the choice of one that has room (JOB-2, JOB-5).

-- name: seen
INSERT INTO instances (id, role, name, status, last_heartbeat_at, created_at)
VALUES (:id, :role, :name, 'online', now_us(), now_us())
ON CONFLICT (role, name) DO UPDATE SET
    last_heartbeat_at = now_us(),
    status = CASE WHEN instances.status = 'draining' THEN 'draining' ELSE 'online' END
RETURNING *;

-- name: connect
INSERT INTO instances (
    id, role, name, status, epoch, server, version, max_in_flight, connected_at, last_heartbeat_at, created_at
)
VALUES (:id, :role, :name, 'online', 1, :server, :version, :max_in_flight, now_us(), now_us(), now_us())
ON CONFLICT (role, name) DO UPDATE SET
    epoch = instances.epoch + 1, server = :server, version = :version, max_in_flight = :max_in_flight,
    connected_at = now_us(), last_heartbeat_at = now_us(),
    -- a person's drain outlives a reconnect; the instance's own was that of its last connection
    status = CASE WHEN instances.drain_asked_at IS NULL THEN 'online' ELSE instances.status END
RETURNING *;

-- name: beat
-- rows: id text, epoch int, server text
UPDATE instances SET last_heartbeat_at = now_us()
FROM @rows
WHERE id = :id AND epoch = :epoch AND server = :server
RETURNING id;

-- name: find
SELECT
    i.*,
    (SELECT count(*) FROM run_pushes AS p WHERE p.instance_id = i.id AND p.finished_at IS NULL)
    + (SELECT count(*) FROM triggers AS t WHERE t.instance_id = i.id AND t.finished_at IS NULL) AS in_flight
FROM instances AS i
WHERE i.id = :id;

-- name: find_named
SELECT
    i.*,
    (SELECT count(*) FROM run_pushes AS p WHERE p.instance_id = i.id AND p.finished_at IS NULL)
    + (SELECT count(*) FROM triggers AS t WHERE t.instance_id = i.id AND t.finished_at IS NULL) AS in_flight
FROM instances AS i
WHERE i.role = :role AND i.name = :name;

-- name: page
SELECT
    i.*,
    (SELECT count(*) FROM run_pushes AS p WHERE p.instance_id = i.id AND p.finished_at IS NULL)
    + (SELECT count(*) FROM triggers AS t WHERE t.instance_id = i.id AND t.finished_at IS NULL) AS in_flight
FROM instances AS i
WHERE i.id > :after
  AND (CAST(:role AS TEXT) IS NULL OR i.role = :role)
  AND (CAST(:status AS TEXT) IS NULL OR i.status = :status)
ORDER BY i.id
LIMIT :limit;

-- name: drain
UPDATE instances SET status = 'draining', drain_asked_at = coalesce(drain_asked_at, now_us())
WHERE id = :id AND status <> 'offline'
RETURNING id;

-- name: drain_itself
UPDATE instances SET status = 'draining'
WHERE id = :id AND epoch = :epoch AND status = 'online'
RETURNING id;

-- name: gone
-- an older connection's end takes nothing from the newer one
UPDATE instances SET
    server = NULL,
    status = CASE WHEN :goodbye = 1 THEN 'offline' ELSE status END,
    drain_asked_at = CASE WHEN :goodbye = 1 THEN NULL ELSE drain_asked_at END
WHERE id = :id AND server = :server AND epoch = :epoch
RETURNING id;

-- name: overdue
SELECT id, role, name, epoch, server FROM instances
WHERE status <> 'offline' AND last_heartbeat_at <= now_us() - :timeout_us
  -- right after a clock jump nothing that looks silent is taken (RUN-5b)
  AND (CAST(:calm_us AS BIGINT) IS NULL OR :timeout_us < :calm_us)
ORDER BY last_heartbeat_at, id
LIMIT :limit;

-- name: mark_offline
UPDATE instances SET status = 'offline', server = NULL, drain_asked_at = NULL
WHERE id = :id AND status <> 'offline' AND last_heartbeat_at <= now_us() - :timeout_us
RETURNING id, epoch;

-- name: stranded
SELECT i.id, i.epoch, i.server FROM instances AS i
LEFT JOIN processes AS p ON p.id = i.server
WHERE i.server IS NOT NULL
  AND (
    p.stopped_at IS NOT NULL
    OR (
        (p.id IS NULL OR p.heartbeat_at <= now_us() - :timeout_us)
        AND (CAST(:calm_us AS BIGINT) IS NULL OR :timeout_us < :calm_us)
    )
  )
ORDER BY i.id
LIMIT :limit;

-- name: clean
DELETE FROM instances WHERE id IN (
    SELECT i.id FROM instances AS i
    WHERE i.status = 'offline' AND i.last_heartbeat_at < now_us() - :older_us
      AND NOT EXISTS (SELECT 1 FROM run_pushes AS p WHERE p.instance_id = i.id AND p.finished_at IS NULL)
      AND NOT EXISTS (SELECT 1 FROM triggers AS t WHERE t.instance_id = i.id AND t.finished_at IS NULL)
      AND NOT EXISTS (SELECT 1 FROM task_locks AS l WHERE l.instance_id = i.id)
    LIMIT :limit
)
RETURNING id;

-- name: roomy
SELECT DISTINCT i.role FROM instances AS i
WHERE i.role IN (SELECT value FROM json_each(:roles)) AND i.status = 'online' AND i.server IS NOT NULL
  AND i.max_in_flight > (
    (SELECT count(*) FROM run_pushes AS p WHERE p.instance_id = i.id AND p.finished_at IS NULL)
    + (SELECT count(*) FROM triggers AS t WHERE t.instance_id = i.id AND t.finished_at IS NULL)
  );

-- name: kept
SELECT id, epoch FROM instances WHERE server = :server;

-- name: candidate
SELECT i.id FROM instances AS i
WHERE i.role = :role AND i.status = 'online' AND i.server IS NOT NULL AND i.id <> :but
  AND i.max_in_flight > (
    (SELECT count(*) FROM run_pushes AS p WHERE p.instance_id = i.id AND p.finished_at IS NULL)
    + (SELECT count(*) FROM triggers AS t WHERE t.instance_id = i.id AND t.finished_at IS NULL)
  )
ORDER BY i.last_chosen_at, i.id
LIMIT 1
-- whoever is at work on an instance keeps it, and the next one is taken: nobody waits, and nobody loses
--postgres: FOR UPDATE OF i SKIP LOCKED
;

-- name: place
-- counted again now that the row is ours: what others wrote while they held it is seen by this statement
UPDATE instances SET last_chosen_at = now_us()
WHERE id = :id AND status = 'online' AND server IS NOT NULL
  AND max_in_flight > (
    (SELECT count(*) FROM run_pushes AS p WHERE p.instance_id = instances.id AND p.finished_at IS NULL)
    + (SELECT count(*) FROM triggers AS t WHERE t.instance_id = instances.id AND t.finished_at IS NULL)
  )
RETURNING id, epoch;
