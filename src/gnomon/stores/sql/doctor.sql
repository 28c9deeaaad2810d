-- What a doctor looks at: loops that still fire, processes, keys that end, the settings that promises stand on (IDM-4).

-- name: schedules
SELECT *, @unfinished_run AS unfinished_run_id FROM schedules
WHERE deleted_at IS NULL AND status IN ('active', 'paused', 'error') AND id > :after
ORDER BY id
LIMIT :limit;

-- name: jobs
SELECT * FROM jobs
WHERE deleted_at IS NULL AND (enabled = 1 OR error IS NOT NULL) AND id > :after
ORDER BY id
LIMIT :limit;

-- name: processes
SELECT id, host, pid, version, heartbeat_at, zone_data, now_us() AS now FROM processes
WHERE stopped_at IS NULL AND id > :after
ORDER BY id
LIMIT :limit;

-- name: keys_ending
SELECT id, name, expires_at FROM api_keys
WHERE revoked_at IS NULL AND expires_at > now_us() AND expires_at <= now_us() + :within_us AND id > :after
ORDER BY id
LIMIT :limit;

-- name: settings
--sqlite: SELECT 'synchronous' AS name, CAST(synchronous AS TEXT) AS setting FROM pragma_synchronous
--sqlite: UNION ALL SELECT 'journal_mode', journal_mode FROM pragma_journal_mode;
--postgres: SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit');
