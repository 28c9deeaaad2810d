-- The queue and the runs: every write by a holder carries owner and fence (HOUSE rule 6).
--
-- Where writers come side by side, whoever ends a run takes its schedule's row first (the lines that begin with AND
-- (SELECT count(*)) and then the run's own, as the dispatcher does: in one order, nobody waits in a circle. And what the
-- schedule learns is written by the next statement, which then sees all that was committed to it before.

-- name: insert
-- rows: id text, trigger_kind text, status text, priority int, target_kind text, target_id text, schedule_id text,
-- rows: revision int, nominal_fire_at int, session_id text, scheduled_for int, claimable_at int, waits_for text,
-- rows: parallel int, lease_seconds int, owner text, claim_id text, fence int, attempt int, trace_id text,
-- rows: invoked_by text, api_key_id text, source text, dedup_key text, query text
-- shared: trigger_kind, status, priority, target_kind, session_id, waits_for, parallel, owner, claim_id, attempt,
-- shared: trace_id, invoked_by, api_key_id, source, dedup_key
-- a session is there with its first run: it needs no row of its own
INSERT INTO runs (
    id, trigger_kind, status, priority, target_kind, target_id, schedule_id, revision, nominal_fire_at, session_id,
    scheduled_for, claimable_at, waits_for, parallel, lease_seconds, lease_until, owner, claim_id, fence, attempt,
    started_at, trace_id, invoked_by, api_key_id, source, dedup_key, created_at, query
)
SELECT
    :id, :trigger_kind, :status, :priority, :target_kind, :target_id, :schedule_id, :revision, :nominal_fire_at,
    :session_id, :scheduled_for, :claimable_at, :waits_for, :parallel, :lease_seconds,
    CASE WHEN :owner IS NULL THEN NULL ELSE now_us() + :lease_seconds * 1000000 END,
    :owner, :claim_id, :fence, :attempt,
    CASE WHEN :owner IS NULL THEN NULL ELSE now_us() END,
    :trace_id, :invoked_by, :api_key_id, :source, :dedup_key,
    CASE WHEN :owner IS NULL THEN now_us() END, :query
FROM @rows;

-- name: claimable
SELECT id, schedule_id FROM (
    SELECT id, schedule_id, priority, claimable_at FROM (
        SELECT id, schedule_id, priority, claimable_at FROM runs
        WHERE priority = 0 AND claimable_at <= now_us() ORDER BY claimable_at LIMIT :limit
    ) AS interactive
    UNION ALL
    SELECT id, schedule_id, priority, claimable_at FROM (
        SELECT id, schedule_id, priority, claimable_at FROM runs
        WHERE priority = 10 AND claimable_at <= now_us() ORDER BY claimable_at LIMIT :limit
    ) AS scheduled
) AS queue
ORDER BY priority, claimable_at
LIMIT :limit;

-- name: next_claimable
SELECT min(claimable_at) - now_us() AS wait_us FROM (
    SELECT min(claimable_at) AS claimable_at FROM runs WHERE priority = 0 AND claimable_at IS NOT NULL
    UNION ALL
    SELECT min(claimable_at) AS claimable_at FROM runs WHERE priority = 10 AND claimable_at IS NOT NULL
) AS queue;

-- name: grant_fence
-- rows: schedule_id text, grants int
UPDATE schedules SET fence = fence + :grants FROM @rows WHERE id = :schedule_id RETURNING id, fence;

-- name: claim
-- rows: id text, owner text, claim_id text, fence int
UPDATE runs SET
    status = 'running', owner = :owner, claim_id = :claim_id, claimable_at = NULL,
    fence = CASE WHEN :fence > fence THEN :fence ELSE fence + 1 END,
    attempt = attempt + 1, started_at = coalesce(started_at, now_us()),
    attempt_at = CASE WHEN started_at IS NULL THEN NULL ELSE now_us() END,
    lease_until = now_us() + lease_seconds * 1000000, deferred = 0
FROM @rows
-- said so that each is found by its id: by its instant all that is queued would be looked through
WHERE id = :id AND status = 'queued' AND claimable_at + 0 <= now_us()
RETURNING id, fence;

-- name: claimed
SELECT
    r.id, r.trigger_kind, r.target_kind, r.target_id, r.schedule_id, r.revision, r.nominal_fire_at,
    coalesce(r.session_id, 'ses_' || substr(r.id, 5)) AS session_id,
    r.fence, r.attempt, r.lease_seconds, r.trace_id, r.dedup_key, r.half_done, r.query,
    s.session_mode, s.overlap, s.failure_streak, s.timeout_seconds, s.max_attempts, s.backoff_seconds, s.backoff_max_seconds, s.on_lost
FROM runs AS r
LEFT JOIN schedules AS s ON s.id = r.schedule_id
WHERE r.id IN (SELECT value FROM json_each(:ids));

-- name: renew
-- rows: id text, owner text, fence int
UPDATE runs SET lease_until = now_us() + lease_seconds * 1000000
FROM @rows
WHERE id = :id AND owner = :owner AND fence = :fence AND status = 'running'
RETURNING id;

-- name: close
-- rows: id text, owner text, fence int, status text, duration_us int, model_calls int, input_tokens int,
-- rows: output_tokens int, cost real, response_preview text, error_code text, error text, output text
-- shared: status, model_calls, input_tokens, output_tokens, cost, response_preview, error_code, error, output
UPDATE runs SET
    status = :status, finished_at = now_us(), duration_us = :duration_us, lease_until = NULL, claim_id = NULL,
    -- beside what the attempts before this one spent
    model_calls = coalesce(model_calls + :model_calls, model_calls, :model_calls),
    input_tokens = coalesce(input_tokens + :input_tokens, input_tokens, :input_tokens),
    output_tokens = coalesce(output_tokens + :output_tokens, output_tokens, :output_tokens),
    cost = coalesce(cost + :cost, cost, :cost),
    response_preview = :response_preview, error_code = :error_code, error = :error, output = :output
FROM @rows
WHERE id = :id AND owner = :owner AND fence = :fence AND status = 'running'
--postgres: AND (SELECT count(*) FROM (
--postgres:   SELECT 1 FROM schedules WHERE id IN (SELECT r.schedule_id FROM @rows JOIN runs AS r ON r.id = :id)
--postgres:   ORDER BY id FOR UPDATE
--postgres: ) AS held) >= 0
RETURNING id;

-- name: close_plain
-- the common end, from which no schedule learns anything: the run locks it no more, being finished
-- rows: id text, owner text, fence int, status text, duration_us int, model_calls int, input_tokens int,
-- rows: output_tokens int, cost real, response_preview text, error_code text, error text, output text
-- shared: status, model_calls, input_tokens, output_tokens, cost, response_preview, error_code, error, output
UPDATE runs SET
    status = :status, finished_at = now_us(), duration_us = :duration_us, lease_until = NULL, claim_id = NULL,
    -- beside what the attempts before this one spent
    model_calls = coalesce(model_calls + :model_calls, model_calls, :model_calls),
    input_tokens = coalesce(input_tokens + :input_tokens, input_tokens, :input_tokens),
    output_tokens = coalesce(output_tokens + :output_tokens, output_tokens, :output_tokens),
    cost = coalesce(cost + :cost, cost, :cost),
    response_preview = :response_preview, error_code = :error_code, error = :error, output = :output
FROM @rows
WHERE id = :id AND owner = :owner AND fence = :fence AND status = 'running'
RETURNING id;

-- name: close_by_fence
UPDATE runs SET
    status = :status, finished_at = now_us(),
    duration_us = CASE WHEN now_us() > started_at THEN now_us() - started_at ELSE 0 END,
    lease_until = NULL, claim_id = NULL,
    -- beside what the attempts before this one spent
    model_calls = coalesce(model_calls + :model_calls, model_calls, :model_calls),
    input_tokens = coalesce(input_tokens + :input_tokens, input_tokens, :input_tokens),
    output_tokens = coalesce(output_tokens + :output_tokens, output_tokens, :output_tokens),
    cost = coalesce(cost + :cost, cost, :cost),
    response_preview = :response_preview, error_code = :error_code, error = :error, output = :output
WHERE id = :id AND fence = :fence AND status = 'running'
--postgres: AND (SELECT count(*) FROM (
--postgres:   SELECT 1 FROM schedules WHERE id = (SELECT schedule_id FROM runs WHERE id = :id) FOR UPDATE
--postgres: ) AS held) >= 0
RETURNING id, schedule_id, trigger_kind, fence;

-- name: close_queued
UPDATE runs SET
    status = :status, finished_at = now_us(), claimable_at = NULL, waits_for = NULL, error_code = :error_code,
    error = :error
WHERE id = :id AND status = 'queued'
--postgres: AND (SELECT count(*) FROM (
--postgres:   SELECT 1 FROM schedules WHERE id = (SELECT schedule_id FROM runs WHERE id = :id) FOR UPDATE
--postgres: ) AS held) >= 0
RETURNING id, schedule_id, trigger_kind, fence;

-- name: spend
UPDATE runs SET
    model_calls = coalesce(model_calls, 0) + :model_calls, input_tokens = coalesce(input_tokens, 0) + :input_tokens,
    output_tokens = coalesce(output_tokens, 0) + :output_tokens, cost = coalesce(cost, 0) + :cost
WHERE id = :id AND fence = :fence AND status = 'running';

-- name: requeue
UPDATE runs SET
    status = 'queued', claimable_at = :claimable_at, scheduled_for = :claimable_at, lease_until = NULL, owner = NULL,
    claim_id = NULL, half_done = CASE WHEN :half_done = 1 THEN 1 ELSE half_done END
WHERE id = :id AND fence = :fence AND status = 'running' AND (CAST(:owner AS TEXT) IS NULL OR owner = :owner)
RETURNING id;

-- name: give_back
-- rows: id text, owner text, fence int
UPDATE runs SET
    status = 'queued', claimable_at = CASE WHEN scheduled_for < now_us() THEN scheduled_for ELSE now_us() END,
    lease_until = NULL, owner = NULL, claim_id = NULL, attempt = attempt - 1,
    created_at = coalesce(created_at, started_at), started_at = CASE WHEN attempt = 1 THEN NULL ELSE started_at END
FROM @rows
WHERE id = :id AND owner = :owner AND fence = :fence AND status = 'running'
RETURNING id;

-- name: under_claim
SELECT id, fence FROM runs WHERE lease_until IS NOT NULL AND claim_id = :claim_id AND owner = :owner;

-- name: insert_attempt
-- of the run as it is held: whoever writes one has it to the end of the transaction, so that its requeueing can't fail
INSERT INTO attempts (run_id, number, fence, worker, started_at, finished_at, outcome, error_code, error)
SELECT id, attempt, fence, owner, coalesce(attempt_at, started_at), now_us(), :outcome, :error_code, :error
FROM runs
WHERE id = :run_id AND fence = :fence AND status = 'running' AND (CAST(:owner AS TEXT) IS NULL OR owner = :owner)
--postgres: FOR UPDATE
ON CONFLICT (run_id, number, fence) DO NOTHING
RETURNING run_id;

-- name: settle
-- rows: schedule_id text, run_id text, clears int
-- shared: clears
UPDATE schedules SET
    in_flight_run_id = CASE WHEN in_flight_run_id = :run_id THEN waiting_run_id ELSE in_flight_run_id END,
    waiting_run_id = CASE WHEN in_flight_run_id = :run_id OR waiting_run_id = :run_id THEN NULL
        ELSE waiting_run_id END,
    failure_streak = CASE WHEN :clears = 1 THEN 0 ELSE failure_streak END
FROM @rows
WHERE id = :schedule_id;

-- name: settle_parallel
UPDATE schedules SET in_flight_run_id = (
    SELECT max(id) FROM runs WHERE runs.schedule_id = schedules.id AND runs.parallel = 1 AND runs.finished_at IS NULL
)
WHERE id IN (SELECT value FROM json_each(:ids)) AND in_flight_run_id IS NULL;

-- name: free_waiting
-- rows: run_id text
UPDATE runs SET claimable_at = CASE WHEN scheduled_for > now_us() THEN scheduled_for ELSE now_us() END,
    waits_for = NULL
FROM @rows
WHERE waits_for = :run_id AND status = 'queued';

-- name: streaks
SELECT id, failure_streak, failure_limit FROM schedules WHERE id IN (SELECT value FROM json_each(:ids));

-- name: move_streak
-- rows: id text, streak int, error_code text, error text
-- shared: streak, error_code, error
UPDATE schedules SET failure_streak = :streak, last_error_code = :error_code, last_error = :error
FROM @rows
WHERE id = :id;

-- name: expired
SELECT
    r.id, r.schedule_id, r.trigger_kind, r.fence, r.owner, r.attempt,
    coalesce(s.on_lost, 'fail') AS on_lost, coalesce(s.max_attempts, 1) AS max_attempts, r.cancel_at, r.cancel_by,
    s.timeout_seconds, s.backoff_seconds, s.backoff_max_seconds,
    CASE
        WHEN r.deferred = 1 AND r.cancel_at IS NOT NULL THEN 'cancel'
        WHEN r.deferred = 1 AND r.deadline_at <= now_us() THEN 'deadline'
        WHEN r.lease_until <= now_us() THEN 'lease'
        ELSE 'heartbeat'
    END AS why
FROM runs AS r
LEFT JOIN schedules AS s ON s.id = r.schedule_id
LEFT JOIN processes AS p ON p.id = r.owner
WHERE r.lease_until IS NOT NULL
  AND (
    (r.lease_until <= now_us() AND (CAST(:calm_us AS BIGINT) IS NULL OR r.lease_seconds * 1000000 < :calm_us))
    OR (
        r.deferred = 0
        AND (p.id IS NULL OR p.heartbeat_at <= now_us() - :heartbeat_timeout_us)
        AND (CAST(:calm_us AS BIGINT) IS NULL OR :heartbeat_timeout_us < :calm_us)
    )
    OR (
        -- its target has the work, and the process that would have stopped it is gone
        r.deferred = 1 AND (r.cancel_at IS NOT NULL OR r.deadline_at <= now_us())
        AND (p.id IS NULL OR p.stopped_at IS NOT NULL OR p.heartbeat_at + :heartbeat_timeout_us <= now_us())
        AND (
            CAST(:calm_us AS BIGINT) IS NULL
            OR (:heartbeat_timeout_us < :calm_us AND r.lease_seconds * 1000000 < :calm_us)
        )
    )
  )
ORDER BY r.lease_until, r.id
LIMIT :limit;

-- name: lose
UPDATE runs SET
    status = :status, finished_at = now_us(),
    duration_us = CASE WHEN now_us() > started_at THEN now_us() - started_at ELSE 0 END,
    lease_until = NULL, claim_id = NULL, half_done = CASE WHEN :status = 'lost' THEN 1 ELSE half_done END,
    error_code = :error_code, error = :error
WHERE id = :id AND fence = :fence AND status = 'running'
--postgres: AND (SELECT count(*) FROM (
--postgres:   SELECT 1 FROM schedules WHERE id = (SELECT schedule_id FROM runs WHERE id = :id) FOR UPDATE
--postgres: ) AS held) >= 0
RETURNING id;

-- name: cancels
SELECT id, cancel_by FROM runs WHERE owner = :owner AND cancel_at IS NOT NULL AND finished_at IS NULL;

-- name: ask_cancel
UPDATE runs SET cancel_at = coalesce(cancel_at, now_us()), cancel_by = coalesce(cancel_by, :by)
WHERE id = :id AND status = 'running'
RETURNING status;

-- name: defer
UPDATE runs SET deferred = 1, deadline_at = coalesce(attempt_at, started_at) + :timeout_us
WHERE id = :id AND owner = :owner AND fence = :fence AND status = 'running'
RETURNING id;

-- name: held_by
SELECT id, fence FROM runs WHERE lease_until IS NOT NULL AND owner = :owner;

-- name: elsewhere
-- until when each may be held at the longest, where nobody renews it any more: as in expired
SELECT count(*) AS runs, max(
    CASE
        WHEN r.deferred = 1 THEN r.lease_until
        WHEN p.id IS NULL THEN now_us()
        WHEN p.heartbeat_at + :heartbeat_timeout_us < r.lease_until THEN p.heartbeat_at + :heartbeat_timeout_us
        ELSE r.lease_until
    END
) AS until
FROM runs AS r
LEFT JOIN processes AS p ON p.id = r.owner
WHERE r.lease_until IS NOT NULL AND r.owner <> :owner;

-- name: unfinished
SELECT id FROM runs WHERE id IN (SELECT value FROM json_each(:ids)) AND status = 'running';

-- name: history_of_session
-- of those that share it, and of the one run whose own it was before
SELECT query, output FROM (
    SELECT * FROM (
        SELECT id, query, output FROM runs
        WHERE session_id = :session_id AND id < :run_id AND output IS NOT NULL
        ORDER BY id DESC LIMIT :limit
    ) AS shared
    UNION ALL
    SELECT id, query, output FROM runs
    WHERE id = 'run_' || substr(:session_id, 5) AND session_id IS NULL AND id < :run_id AND output IS NOT NULL
) AS said
ORDER BY id DESC LIMIT :limit;

-- name: checkpoints
SELECT node, output, usage FROM checkpoints WHERE run_id = :run_id;

-- name: spent_on_nodes
SELECT usage FROM checkpoints WHERE run_id = :run_id AND fence = :fence AND usage IS NOT NULL;

-- name: checkpoint
INSERT INTO checkpoints (run_id, node, fence, output, usage, created_at)
SELECT id, :node, fence, :output, :usage, now_us() FROM runs
WHERE id = :run_id AND fence = :fence AND owner = :owner AND status = 'running'
-- a node that was kept before stays as it was, and is told to whoever holds the run as kept
ON CONFLICT (run_id, node) DO UPDATE SET fence = checkpoints.fence
RETURNING run_id;

-- name: event
INSERT INTO run_events (run_id, seq, at, kind, data)
SELECT id, (SELECT coalesce(max(seq), 0) + 1 FROM run_events WHERE run_id = :run_id), now_us(), :kind, :data
FROM runs WHERE id = :run_id AND fence = :fence AND status = 'running'
  AND (SELECT count(*) FROM run_events WHERE run_id = :run_id) < :most
RETURNING run_id;
