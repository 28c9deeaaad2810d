-- What is too old to keep: run history by its own age, the slot ledger and the audit by theirs (RUN-11, DSP-9a).

-- name: old_runs
DELETE FROM runs WHERE id IN (
    SELECT id FROM runs WHERE id < :before_id AND finished_at IS NOT NULL ORDER BY id LIMIT :limit
)
RETURNING id, schedule_id, coalesce(session_id, 'ses_' || substr(id, 5)) AS session_id;

-- name: last_run
-- rows: schedule_id text, run_id text
-- a schedule that has had no run since knows none any more
UPDATE schedules SET in_flight_run_id = NULL FROM @rows WHERE id = :schedule_id AND in_flight_run_id = :run_id;

-- name: session
-- rows: session_id text
DELETE FROM sessions
WHERE id IN (SELECT :session_id FROM @rows) AND erased_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.session_id = sessions.id)
  AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = 'run_' || substr(sessions.id, 5) AND runs.session_id IS NULL)
  AND NOT EXISTS (SELECT 1 FROM schedules WHERE schedules.session_id = sessions.id AND schedules.deleted_at IS NULL);

-- name: attempts
-- rows: id text
DELETE FROM attempts WHERE run_id IN (SELECT :id FROM @rows);

-- name: checkpoints
-- rows: id text
DELETE FROM checkpoints WHERE run_id IN (SELECT :id FROM @rows);

-- name: events
-- rows: id text
DELETE FROM run_events WHERE run_id IN (SELECT :id FROM @rows);

-- name: old_triggers
-- whatever their age: where a job stands is kept on the job, so that none of its slots gets a trigger again
DELETE FROM triggers WHERE id IN (
    SELECT id FROM triggers WHERE id < :before_id AND finished_at IS NOT NULL ORDER BY id LIMIT :limit
)
RETURNING id;

-- name: raise_floor
UPDATE retention_floor SET
    occurrences_before = CASE WHEN :occurrences_before > occurrences_before THEN :occurrences_before
        ELSE occurrences_before END,
    audit_before = CASE WHEN :audit_before > audit_before THEN :audit_before ELSE audit_before END,
    runs_before = CASE WHEN :runs_before > runs_before THEN :runs_before ELSE runs_before END
WHERE id = 1;

-- name: next_ledger
SELECT min(schedule_id) AS schedule_id FROM occurrences WHERE schedule_id > :after;

-- name: old_occurrences
DELETE FROM occurrences WHERE schedule_id = :schedule_id AND nominal_fire_at IN (
    SELECT nominal_fire_at FROM occurrences
    WHERE schedule_id = :schedule_id AND nominal_fire_at < :before
      AND nominal_fire_at < (
          -- the two newest stay, whatever their age: the ledger never forgets where a schedule stands
          SELECT min(nominal_fire_at) FROM (
              SELECT nominal_fire_at FROM occurrences WHERE schedule_id = :schedule_id
              ORDER BY nominal_fire_at DESC LIMIT 2
          ) AS newest
      )
    ORDER BY nominal_fire_at LIMIT :limit
)
RETURNING nominal_fire_at;

-- name: old_audit
DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE at < :before ORDER BY seq LIMIT :limit)
RETURNING seq;
