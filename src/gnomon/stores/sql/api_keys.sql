-- API keys, found by the hash of their text (SEC-3), and the secrets of the centre itself.

-- name: keep_secret
INSERT INTO secrets (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING;

-- name: secret
SELECT value FROM secrets WHERE name = :name;

-- name: insert
INSERT INTO api_keys (id, name, hash, hint, scopes, target_kind, target_id, role, created_at, created_by, expires_at)
VALUES (:id, :name, :hash, :hint, :scopes, :target_kind, :target_id, :role, now_us(), :created_by, :expires_at)
RETURNING created_at;

-- name: by_hash
SELECT *, now_us() AS now FROM api_keys WHERE hash = :hash;

-- name: by_id
SELECT * FROM api_keys WHERE id = :id AND revoked_at IS NULL;

-- name: page
SELECT * FROM api_keys
WHERE id > :after AND (:revoked = 1 OR revoked_at IS NULL)
ORDER BY id
LIMIT :limit;

-- name: count
SELECT count(*) AS count FROM api_keys WHERE revoked_at IS NULL;

-- name: edit
UPDATE api_keys SET name = :name, expires_at = :expires_at WHERE id = :id AND revoked_at IS NULL;

-- name: use
UPDATE api_keys SET last_used_at = now_us()
WHERE id = :id AND (last_used_at IS NULL OR last_used_at <= now_us() - :rest_us);

-- name: still_open
SELECT id FROM api_keys
WHERE id IN (SELECT value FROM json_each(:ids)) AND revoked_at IS NULL
  AND (expires_at IS NULL OR expires_at > now_us());

-- name: revoke
UPDATE api_keys SET revoked_at = now_us() WHERE id = :id AND revoked_at IS NULL RETURNING id;

-- name: revoke_of_target
UPDATE api_keys SET revoked_at = now_us()
WHERE target_kind = :kind AND target_id = :target_id AND revoked_at IS NULL
RETURNING id;
