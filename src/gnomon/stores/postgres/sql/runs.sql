-- What the queue needs where claims come side by side.

-- name: claimable
-- A run of a schedule that somebody is at work on is left for the next claim: its fence could not be drawn without a wait
-- (DSP-3). No more is locked than is taken.
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
)
SELECT id, schedule_id FROM queue
WHERE schedule_id IS NULL
   OR schedule_id IN (SELECT id FROM held)
   OR NOT EXISTS (SELECT 1 FROM schedules WHERE schedules.id = queue.schedule_id)
ORDER BY priority, claimable_at;
