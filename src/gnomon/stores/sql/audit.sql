-- The audit log: append and read, nothing else (SEC-7).

-- name: append
-- rows: actor text, action text, subject_kind text, subject_id text, fence int, detail text
-- shared: actor, action, subject_kind, detail
INSERT INTO audit (at, actor, action, subject_kind, subject_id, fence, detail)
SELECT now_us(), :actor, :action, :subject_kind, :subject_id, :fence, :detail FROM @rows;

-- name: after
SELECT seq, at, actor, action, subject_kind, subject_id, fence, detail FROM audit
WHERE seq > :seq
  AND (CAST(:action AS TEXT) IS NULL OR action = :action)
  AND (CAST(:subject_id AS TEXT) IS NULL OR subject_id = :subject_id)
ORDER BY seq
LIMIT :limit;
