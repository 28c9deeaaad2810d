-- Teams, found by id or slug; a deleted one keeps its row, for the runs that name it.

-- name: insert
INSERT INTO teams (
    id, slug, name, nodes, output, daily_cap, limits, enabled, version, created_at, created_by, updated_at
) VALUES (
    :id, :slug, :name, :nodes, :output, :daily_cap, :limits, :enabled, 1, now_us(), :created_by, now_us()
)
RETURNING *;

-- name: find
SELECT * FROM teams WHERE (id = :name OR slug = :name) AND deleted_at IS NULL;

-- name: page
SELECT * FROM teams WHERE id > :after AND deleted_at IS NULL ORDER BY id LIMIT :limit;

-- name: update
UPDATE teams SET
    name = :name, nodes = :nodes, output = :output, daily_cap = :daily_cap, limits = :limits, enabled = :enabled,
    version = version + 1, updated_at = now_us()
WHERE id = :id AND version = :version AND deleted_at IS NULL
RETURNING *;

-- name: delete
UPDATE teams SET deleted_at = now_us(), version = version + 1 WHERE id = :id AND deleted_at IS NULL;
