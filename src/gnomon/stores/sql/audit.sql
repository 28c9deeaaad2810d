-- The audit log: append and read, nothing else (SEC-7).

-- name: append
-- what happened to many subjects at once is one row, whose number is its last entry's; what happened to one is a row as
-- it reads
-- rows: batch int, actor text, action text, subject_kind text, entry text
-- shared: batch, actor, action, subject_kind
-- gathered: entry, how_many
INSERT INTO audit (
--sqlite: seq,
    at, actor, action, subject_kind, subject_id, fence, detail, how_many, entries
)
SELECT
--sqlite: (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'audit')
--sqlite: + sum(:how_many) OVER (ROWS UNBOUNDED PRECEDING),
    now_us(), :actor, :action, :subject_kind,
--sqlite: CASE WHEN :how_many = 1 THEN :entry ->> 0 ELSE '' END,
--sqlite: CASE WHEN :how_many = 1 THEN :entry ->> 1 END,
--sqlite: CASE WHEN :how_many = 1 THEN :entry ->> 2 END,
--postgres: CASE WHEN :how_many = 1 THEN (audit_parts(:entry))[1] ELSE '' END,
--postgres: CASE WHEN :how_many = 1 THEN nullif((audit_parts(:entry))[2], 'null')::bigint END,
--postgres: CASE WHEN :how_many = 1 THEN nullif((audit_parts(:entry))[3], 'null') END,
    :how_many, CASE WHEN :how_many > 1 THEN '[' || :entry || ']' END
--postgres: FROM @draws CROSS JOIN @rows;
--sqlite: FROM @rows;

-- name: settled
-- Behind this number something smaller may still come: on one engine a number is drawn before the commit. A transaction
-- that draws holds a lock, whose name is how far the numbers had come before. What was drawn is asked before who draws, and
-- that in a statement before the one that reads.
--sqlite: SELECT coalesce(max(seq), 0) AS seq FROM audit;
--postgres: SELECT least(drawn.last, draws.least) AS seq
--postgres: FROM (
--postgres:     SELECT coalesce(pg_sequence_last_value('audit_seq_seq'::regclass), 0) AS last
--postgres: ) AS drawn CROSS JOIN LATERAL (
--postgres:     SELECT min((drawn.last / 1000 + (objid::bigint - drawn.last / 1000)::bit(32)::int) * 1000 + 999) AS least
--postgres:     FROM pg_locks
--postgres:     WHERE locktype = 'advisory' AND classid = 'audit_seq_seq'::regclass::oid AND objsubid = 2
--postgres:       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
--postgres: ) AS draws;

-- name: after
-- a row of many is taken apart only where the subject stands in it somewhere; IS TRUE: a range with two ends is taken for
-- a narrow one, and then read to its end and sorted
SELECT seq, at, actor, action, subject_kind, subject_id, fence, detail FROM audit_entries
WHERE batch > :seq AND seq > :seq AND (batch <= :until) IS TRUE
  AND (CAST(:action AS TEXT) IS NULL OR action = :action)
  AND (CAST(:subject_id AS TEXT) IS NULL OR subject_id = :subject_id)
--sqlite: AND (:subject_id IS NULL OR entries IS NULL OR instr(entries, :subject_id))
--postgres: AND (CAST(:subject_id AS TEXT) IS NULL OR entries IS NULL OR strpos(entries, :subject_id) > 0)
ORDER BY batch, seq
LIMIT :limit;
