-- A slot comes due: the claim of due schedules, the ledger's row, the schedule moved on (DSP-3, DSP-5, SCH-3).

-- name: claim_due
SELECT
    id, revision, target_kind, target_id, cadence, calendar, anchor_at, query, session_mode, session_id,
    starts_at, ends_at, max_runs, overlap, catch_up, misfire_grace_seconds, jitter_seconds, dedup_key,
    next_fire_at, last_fire_at, recorded_until, run_count, in_flight_run_id, waiting_run_id, fence, failure_streak,
    timeout_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_lost,
    @lease_seconds AS lease_seconds, @unfinished_run AS unfinished_run_id, now_us() AS now
FROM schedules
WHERE status = 'active' AND next_fire_at <= now_us()
ORDER BY next_fire_at
LIMIT :limit OFFSET :skip;

-- name: next_due
SELECT min(next_fire_at) - now_us() AS wait_us FROM schedules
WHERE status = 'active' AND next_fire_at IS NOT NULL;

-- name: hold_due
-- the same where a crowd is at it: whoever comes first keeps what it reads until it has written (write_held)
@claim_due
--postgres: FOR UPDATE SKIP LOCKED
;

-- name: enter
-- rows: schedule_id text, nominal_fire_at int, revision int, disposition text, reason text, coalesced_first int,
-- rows: coalesced_last int, coalesced_count int, run_id text, session_id text
-- shared: disposition, reason, coalesced_first, coalesced_last, coalesced_count
INSERT INTO occurrences (
    schedule_id, nominal_fire_at, revision, disposition, reason, coalesced_first, coalesced_last, coalesced_count,
    run_id, session_id, created_at
)
SELECT
    :schedule_id, :nominal_fire_at, :revision, :disposition, :reason, :coalesced_first, :coalesced_last,
    :coalesced_count, :run_id, :session_id, now_us()
FROM @rows;

-- name: record
-- rows: schedule_id text, nominal_fire_at int, revision int, disposition text, reason text, coalesced_first int,
-- rows: coalesced_last int, coalesced_count int, run_id text, session_id text
@enter
WHERE true
ON CONFLICT (schedule_id, nominal_fire_at) DO NOTHING
RETURNING schedule_id;

-- name: recorded
-- rows: schedule_id text, nominal_fire_at int
SELECT o.schedule_id FROM @rows, occurrences AS o
WHERE o.schedule_id = :schedule_id AND o.nominal_fire_at = :nominal_fire_at;

-- name: advance
-- rows: id text, claimed_at int, next_fire_at int, recorded_until int, fired_at int, fired int, in_flight_run_id text,
-- rows: waiting_run_id text, granted int, seen_at int, seen_revision int, seen_runs int, seen_fence int,
-- rows: seen_in_flight text, seen_waiting text
-- shared: fired, waiting_run_id, granted
UPDATE schedules SET
    next_fire_at = :next_fire_at,
    recorded_until = coalesce(:recorded_until, recorded_until),
    last_fire_at = coalesce(:fired_at, last_fire_at),
    run_count = run_count + :fired,
    in_flight_run_id = coalesce(:in_flight_run_id, in_flight_run_id),
    waiting_run_id = coalesce(:waiting_run_id, waiting_run_id),
    fence = fence + :granted
--sqlite: FROM @rows
-- found by its id once, and then known by its place; and whoever is at work on a schedule keeps it: nobody waits for a
-- lock while leases are stamped (DSP-3)
--postgres: FROM (SELECT schedules.ctid AS place, given.* FROM @rows JOIN schedules ON schedules.id = :id
-- said so that it is found by its id: by status and instant all would be looked through that share its instant
WHERE status || '' = 'active' AND next_fire_at + 0 = :claimed_at
  AND revision = :seen_revision AND run_count = :seen_runs AND fence = :seen_fence
  AND coalesce(in_flight_run_id, '') = coalesce(:seen_in_flight, '')
  AND coalesce(waiting_run_id, '') = coalesce(:seen_waiting, '')
  -- decided a moment ago, by a clock that has not been set since
  AND now_us() BETWEEN :claimed_at AND :seen_at + 5000000
--sqlite: AND id = :id
--postgres: FOR UPDATE OF schedules SKIP LOCKED) AS given WHERE schedules.ctid = given.place
RETURNING id;

-- name: stop
-- rows: id text, status text, by text, reason text, error_code text, error text
-- shared: status, by, reason, error_code, error
UPDATE schedules SET
    status = :status, status_by = :by, status_at = now_us(), status_reason = :reason, status_until = NULL,
    next_fire_at = NULL, last_error_code = coalesce(:error_code, last_error_code),
    last_error = coalesce(:error, last_error)
FROM @rows
-- said so that each is found by its id: by status all would be looked through that are active
WHERE id = :id AND status || '' = 'active' AND deleted_at IS NULL
RETURNING id;

-- name: note_status
-- rows: id text, status text, by text, reason text
-- shared: status, by, reason
INSERT INTO status_changes (schedule_id, seq, at, status, changed_by, reason)
SELECT
    :id, coalesce((SELECT max(seq) FROM status_changes WHERE schedule_id = :id), 0) + 1, now_us(), :status, :by, :reason
FROM @rows;

-- name: far_ahead
-- the id as well: many may have one instant, and a page may end in the middle of them
SELECT id, cadence, calendar, anchor_at, starts_at, next_fire_at, recorded_until, now_us() AS now
FROM schedules
WHERE status = 'active' AND next_fire_at >= :after AND (next_fire_at > :after OR id > :after_id)
ORDER BY next_fire_at, id
LIMIT :limit;

-- name: realign
-- rows: id text, claimed_at int, next_fire_at int
UPDATE schedules SET next_fire_at = :next_fire_at
FROM @rows
-- said so that each is found by its id: by status and instant all would be looked through that share its instant
WHERE id = :id AND status || '' = 'active' AND next_fire_at + 0 = :claimed_at;

-- name: calendars
SELECT slug, dates FROM calendars WHERE slug IN (SELECT value FROM json_each(:slugs));
