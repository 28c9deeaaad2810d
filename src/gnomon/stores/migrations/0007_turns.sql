-- What a run was asked and what it answered is part of its own row (RUN-9).
--
-- The long texts are the last columns: SQLite reads a row from its beginning, and comes to them only where they are asked
-- for.

-- where it differs from started_at: a run that was born into the queue
ALTER TABLE runs ADD COLUMN created_at INTEGER;
-- the seed of its checkpoints; empty where its session was erased (RUN-12)
ALTER TABLE runs ADD COLUMN query TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN output TEXT;

UPDATE runs SET created_at = nullif(t.created_at, started_at), query = t.query, output = t.output
FROM turns AS t
WHERE t.run_id = runs.id AND t.session_id = coalesce(runs.session_id, 'ses_' || substr(runs.id, 5));
-- the turn of an erased one is gone, and it may never have started
UPDATE runs SET created_at = scheduled_for WHERE created_at IS NULL AND started_at IS NULL;
DROP TABLE turns;

-- sessions that are not a run's own: that one is found by the run's id
CREATE INDEX runs_session ON runs (session_id, id) WHERE session_id IS NOT NULL;
