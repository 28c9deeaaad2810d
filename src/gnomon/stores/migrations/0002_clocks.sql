-- What a process's heartbeat says of the clock it was written under, and how long things that no process watches last.

-- The boot of the machine, and its clock since that boot (microseconds) as the heartbeat was written: with heartbeat_at
-- the offset of the wall clock, which every process of the same boot can compare with its own (RUN-5b).
ALTER TABLE processes ADD COLUMN boot TEXT;
ALTER TABLE processes ADD COLUMN boot_us INTEGER;

-- When a run whose target took it with a 202 is out of time, whoever watches.
ALTER TABLE runs ADD COLUMN deadline_at INTEGER;

-- Runs made before this may have been deleted for their age: their slots stay without them (RUN-11).
ALTER TABLE retention_floor ADD COLUMN runs_before INTEGER NOT NULL DEFAULT 0;
--sqlite: CREATE TRIGGER retention_floor_of_runs_rises BEFORE UPDATE ON retention_floor
--sqlite: WHEN NEW.runs_before < OLD.runs_before
--sqlite: BEGIN SELECT RAISE(ABORT, 'the retention floor only rises'); END;
--postgres: CREATE TRIGGER retention_floor_of_runs_rises BEFORE UPDATE ON retention_floor FOR EACH ROW
--postgres: WHEN (NEW.runs_before < OLD.runs_before) EXECUTE FUNCTION append_only('the retention floor only rises');
