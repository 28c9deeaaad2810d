-- Agents, found by id or slug; a deleted one keeps its row, for the runs that name it.

-- name: insert
INSERT INTO agents (
    id, slug, name, runtime, timeout_seconds, daily_cap, limits, secret, enabled, version, created_at, created_by,
    updated_at
) VALUES (
    :id, :slug, :name, :runtime, :timeout_seconds, :daily_cap, :limits, :secret, :enabled, 1, now_us(), :created_by,
    now_us()
)
RETURNING *;

-- name: find
SELECT * FROM agents WHERE (id = :name OR slug = :name) AND deleted_at IS NULL;

-- name: page
SELECT * FROM agents WHERE id > :after AND deleted_at IS NULL ORDER BY id LIMIT :limit;

-- name: update
UPDATE agents SET
    name = :name, runtime = :runtime, timeout_seconds = :timeout_seconds, daily_cap = :daily_cap, limits = :limits,
    secret = :secret, enabled = :enabled, version = version + 1, updated_at = now_us()
WHERE id = :id AND version = :version AND deleted_at IS NULL
RETURNING *;

-- name: delete
UPDATE agents SET deleted_at = now_us(), secret = NULL, version = version + 1 WHERE id = :id AND deleted_at IS NULL;
