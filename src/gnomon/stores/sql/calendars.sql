-- Holiday calendars, found by id or slug (CAD-9).

-- name: insert
INSERT INTO calendars (id, slug, name, dates, version, created_at, created_by, updated_at)
VALUES (:id, :slug, :name, :dates, 1, now_us(), :created_by, now_us())
RETURNING *;

-- name: find
SELECT * FROM calendars WHERE id = :name OR slug = :name;

-- name: page
SELECT * FROM calendars WHERE id > :after ORDER BY id LIMIT :limit;

-- name: update
UPDATE calendars SET name = :name, dates = :dates, version = version + 1, updated_at = now_us()
WHERE id = :id AND version = :version
RETURNING *;

-- name: users
SELECT id FROM schedules WHERE calendar = :slug AND deleted_at IS NULL
UNION ALL
SELECT id FROM jobs WHERE calendar = :slug AND deleted_at IS NULL
ORDER BY id LIMIT :limit;

-- name: delete
DELETE FROM calendars WHERE id = :id;
