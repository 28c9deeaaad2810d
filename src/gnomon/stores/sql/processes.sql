-- The processes that dispatch and work: one heartbeat row each (RUN-4, RUN-5a).

-- name: start
INSERT INTO processes (id, host, pid, version, started_at, heartbeat_at, zone_data, boot, boot_us)
VALUES (:id, :host, :pid, :version, now_us(), now_us(), :zone_data, :boot, :boot_us);

-- name: zone_data
SELECT zone_data FROM processes ORDER BY started_at DESC, id DESC LIMIT 1;

-- name: beat
UPDATE processes SET
    heartbeat_at = now_us(), boot_us = :boot_us, ticked_at = coalesce(:ticked_at, ticked_at),
    tick_lag_us = coalesce(:lag_us, tick_lag_us)
WHERE id = :id AND stopped_at IS NULL
RETURNING heartbeat_at;

-- name: readings
-- the present first: it is there, whoever else is
SELECT 0 AS place, now_us() AS heartbeat_at, 0 AS boot_us
UNION ALL
SELECT 1 AS place, heartbeat_at, boot_us FROM (
    SELECT heartbeat_at, boot_us FROM processes WHERE boot = :boot AND boot_us IS NOT NULL
    ORDER BY boot_us DESC LIMIT :limit
) AS latest
ORDER BY place;

-- name: stop
UPDATE processes SET stopped_at = now_us() WHERE id = :id;

-- name: clean
DELETE FROM processes
WHERE heartbeat_at < now_us() - :older_us
  AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.owner = processes.id AND runs.lease_until IS NOT NULL);

-- name: now
SELECT now_us() AS now;

-- name: holds
SELECT
    r.id, r.schedule_id, r.trigger_kind, r.fence, r.owner, r.attempt,
    coalesce(s.on_lost, 'fail') AS on_lost, coalesce(s.max_attempts, 1) AS max_attempts, r.cancel_at, 'given_up' AS why
FROM runs AS r
LEFT JOIN schedules AS s ON s.id = r.schedule_id
WHERE r.lease_until IS NOT NULL AND r.owner = :id;
