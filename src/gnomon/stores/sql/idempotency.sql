-- Answers kept under an Idempotency-Key (IDM-2).

-- name: reserve
INSERT INTO idempotency_keys (scope, key, fingerprint, answer, created_at, expires_at)
VALUES (:scope, :key, :fingerprint, NULL, now_us(), now_us() + :lasts_us)
ON CONFLICT (scope, key) DO UPDATE SET
    fingerprint = excluded.fingerprint, answer = NULL, created_at = excluded.created_at,
    expires_at = excluded.expires_at
WHERE idempotency_keys.expires_at <= now_us()
RETURNING key;

-- name: find
SELECT fingerprint, answer FROM idempotency_keys WHERE scope = :scope AND key = :key;

-- name: keep
UPDATE idempotency_keys SET answer = :answer WHERE scope = :scope AND key = :key;

-- name: clean
DELETE FROM idempotency_keys WHERE (scope, key) IN (
    SELECT scope, key FROM idempotency_keys WHERE expires_at <= now_us() ORDER BY expires_at LIMIT :limit
);
