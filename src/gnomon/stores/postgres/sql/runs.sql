-- What the queue needs where claims come side by side.

-- name: claim_at_once
-- What stores/runs.py does statement by statement elsewhere, in one trip, the audit included.
-- A run of a schedule that somebody is at work on is left for the next claim: its fence could not be drawn without a wait
-- (DSP-3). No more is locked than is taken. What is changed was locked here before, in the version that is there now, so
-- that nobody waits while a lease is stamped; and what is told of a schedule is of that version.
WITH interactive AS MATERIALIZED (
    SELECT id, schedule_id, priority, claimable_at FROM runs
    WHERE priority = 0 AND claimable_at <= now_us()
    ORDER BY claimable_at LIMIT :limit
    FOR UPDATE SKIP LOCKED
), scheduled AS MATERIALIZED (
    SELECT id, schedule_id, priority, claimable_at FROM runs
    WHERE priority = 10 AND claimable_at <= now_us()
    ORDER BY claimable_at LIMIT greatest(:limit - (SELECT count(*) FROM interactive), 0)
    FOR UPDATE SKIP LOCKED
), queue AS (
    SELECT * FROM interactive UNION ALL SELECT * FROM scheduled
), held AS MATERIALIZED (
    SELECT id FROM schedules WHERE id IN (SELECT schedule_id FROM queue)
    FOR UPDATE SKIP LOCKED
), taken AS MATERIALIZED (
    SELECT *, row_number() OVER (ORDER BY priority, claimable_at) AS place FROM (
        SELECT *, schedule_id IN (SELECT id FROM held) AS is_held FROM queue
    ) AS looked_at
    WHERE is_held OR schedule_id IS NULL
       OR NOT EXISTS (SELECT 1 FROM schedules WHERE schedules.id = looked_at.schedule_id)
), granted AS (
    UPDATE schedules SET fence = fence + given.grants
    FROM (
        SELECT
            schedule_id, count(*) AS grants, array_agg(id ORDER BY place) AS run_ids,
            array_agg(place ORDER BY place) AS places
        FROM taken WHERE is_held GROUP BY schedule_id
    ) AS given
    WHERE id = given.schedule_id
    RETURNING
        fence - given.grants AS fence_before, run_ids, places, session_mode, overlap, failure_streak, timeout_seconds,
        max_attempts, backoff_seconds, backoff_max_seconds, on_lost
), claimed AS (
    UPDATE runs SET
        status = 'running', owner = :owner, claim_id = :claim_id, claimable_at = NULL,
        fence = greatest(given.next_fence, fence + 1), attempt = attempt + 1,
        started_at = coalesce(started_at, now_us()),
        attempt_at = CASE WHEN started_at IS NULL THEN NULL ELSE now_us() END,
        lease_until = now_us() + lease_seconds * 1000000, deferred = 0
    FROM (
        SELECT
            run_id, place, fence_before + nth AS next_fence, session_mode, overlap, failure_streak, timeout_seconds,
            max_attempts, backoff_seconds, backoff_max_seconds, on_lost
        FROM granted, unnest(run_ids, places) WITH ORDINALITY AS grants (run_id, place, nth)
        UNION ALL
        SELECT id, place, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM taken WHERE is_held IS NOT TRUE
    ) AS given
    -- said so that each is found by its id: by its instant all that is queued would be looked through
    WHERE id = given.run_id AND status = 'queued' AND coalesce(claimable_at <= now_us(), false)
    RETURNING
        id, trigger_kind, target_kind, target_id, schedule_id, revision, nominal_fire_at,
        coalesce(session_id, 'ses_' || substr(id, 5)) AS session_id, fence, attempt, lease_seconds, trace_id, dedup_key,
        half_done, query, session_mode, overlap, failure_streak, timeout_seconds, max_attempts, backoff_seconds,
        backoff_max_seconds, on_lost, place
), told AS (
    -- what `audit.append` would write of them
    INSERT INTO audit (at, actor, action, subject_kind, subject_id, fence, detail, how_many, entries)
    SELECT
        now_us(), :owner, 'CLAIM', 'run',
        CASE WHEN how_many = 1 THEN first ELSE '' END,
        CASE WHEN how_many = 1 THEN fence END,
        CASE WHEN how_many = 1 THEN '{"attempt":' || attempt || '}' END,
        how_many, CASE WHEN how_many > 1 THEN '[' || entries || ']' END
    FROM @draws CROSS JOIN (
        SELECT
            count(*) AS how_many, min(id) AS first, min(fence) AS fence, min(attempt) AS attempt,
            string_agg('["' || id || '",' || fence || ',{"attempt":' || attempt || '}]', ',' ORDER BY place) AS entries
        FROM claimed HAVING count(*) > 0
    ) AS given
)
SELECT * FROM claimed ORDER BY place;
