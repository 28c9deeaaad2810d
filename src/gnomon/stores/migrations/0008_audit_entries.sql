-- One row of the audit holds all that happened to many subjects at once; whoever reads sees an entry for each (SEC-7).
--
-- A row's number is that of its last entry, so it reaches over as many numbers as it has entries. ``entries`` is a JSON
-- array of [subject_id, fence, detail], NULL where the row is one entry itself.

ALTER TABLE audit ADD COLUMN how_many INTEGER NOT NULL DEFAULT 1 CHECK (how_many BETWEEN 1 AND 1000);
ALTER TABLE audit ADD COLUMN entries TEXT CHECK ((entries IS NULL) = (how_many = 1));

-- The numbers that one row may reach over. One is drawn, so that the first row of all does not reach below the first.
--postgres: ALTER TABLE audit ALTER COLUMN seq SET INCREMENT BY 1000;
--postgres: SELECT nextval(pg_get_serial_sequence('audit', 'seq'));

-- Subject, fence and detail of an entry. The operators for JSON would undo the escapes of the detail, and some stand for
-- what a text can't hold here.
--postgres: CREATE FUNCTION audit_parts(entry TEXT) RETURNS TEXT[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
--postgres: AS $$ SELECT regexp_match(entry, '^\["([^"]*)",(null|-?[0-9]+),(.*)\]$') $$;

-- What the audit tells, one row for each entry. ``seq`` is the number that people see, ``batch`` that of the row it stands
-- in, ``entries`` all that stands there.
CREATE VIEW audit_entries AS
SELECT
--sqlite: a.seq - a.how_many + coalesce(e.key, 0) + 1 AS seq,
--postgres: a.seq - a.how_many + coalesce(e.place, 1) AS seq,
    a.at, a.actor, a.action, a.subject_kind,
--sqlite: CASE WHEN a.entries IS NULL THEN a.subject_id ELSE e.value ->> 0 END AS subject_id,
--sqlite: CASE WHEN a.entries IS NULL THEN a.fence ELSE e.value ->> 1 END AS fence,
--sqlite: CASE WHEN a.entries IS NULL THEN a.detail ELSE e.value ->> 2 END AS detail,
--postgres: CASE WHEN a.entries IS NULL THEN a.subject_id ELSE p.part[1] END AS subject_id,
--postgres: CASE WHEN a.entries IS NULL THEN a.fence ELSE nullif(p.part[2], 'null')::bigint END AS fence,
--postgres: CASE WHEN a.entries IS NULL THEN a.detail ELSE nullif(p.part[3], 'null') END AS detail,
    a.seq AS batch, a.entries
FROM audit AS a
--sqlite: LEFT JOIN json_each(a.entries) AS e;
--postgres: LEFT JOIN LATERAL json_array_elements(a.entries::json) WITH ORDINALITY AS e (value, place) ON true
--postgres: CROSS JOIN LATERAL audit_parts(e.value::text) AS p (part);
