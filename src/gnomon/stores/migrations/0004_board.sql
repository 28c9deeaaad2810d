-- The board: one-off tasks, what each needs done before it, and who holds which (BRD-1 to BRD-8).

CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (length(role) BETWEEN 1 AND 64),
    title TEXT NOT NULL CHECK (length(title) BETWEEN 1 AND 200),
    body TEXT NOT NULL CHECK (length(body) <= 100000),
    priority INTEGER NOT NULL CHECK (priority BETWEEN -1000000 AND 1000000),
    status TEXT NOT NULL
        CHECK (status IN ('backlog', 'in_progress', 'in_review', 'blocked', 'done', 'cancelled')),
    -- how many of its prerequisites are not done: kept with each end of one, so that a claim looks at no gated task
    unmet INTEGER NOT NULL CHECK (unmet >= 0),
    -- the last one that was granted; it never falls, whoever comes next
    fence INTEGER NOT NULL DEFAULT 0 CHECK (fence >= 0),
    half_done INTEGER NOT NULL DEFAULT 0 CHECK (half_done IN (0, 1)),
    -- what a holder said last, as JSON, and when (BRD-6)
    last_report TEXT CHECK (length(last_report) <= 200000),
    reported_at INTEGER,
    -- the name under which it exists once, and a digest of what was written under it (IDM-2)
    dedup_key TEXT CHECK (length(dedup_key) BETWEEN 1 AND 200),
    dedup_mark TEXT,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK ((last_report IS NULL) = (reported_at IS NULL)),
    CHECK ((dedup_key IS NULL) = (dedup_mark IS NULL)),
    -- nobody works on what was never granted
    CHECK (status <> 'in_progress' OR fence >= 1)
)
--sqlite: STRICT, WITHOUT ROWID
--postgres: WITH (fillfactor = 80)
;
-- what can be claimed and nothing else, in the order in which it is
CREATE INDEX tasks_claimable ON tasks (role, priority DESC, id) WHERE status = 'backlog' AND unmet = 0;
CREATE UNIQUE INDEX tasks_dedup ON tasks (dedup_key) WHERE dedup_key IS NOT NULL;

CREATE TABLE task_prerequisites (
    task_id TEXT NOT NULL,
    prerequisite_id TEXT NOT NULL,
    PRIMARY KEY (task_id, prerequisite_id),
    CHECK (task_id <> prerequisite_id)
)
--sqlite: STRICT, WITHOUT ROWID
;
CREATE INDEX task_prerequisites_of ON task_prerequisites (prerequisite_id, task_id);

-- Who holds a task: there is room for one (BRD-1). A claim inserts the row, a report, a release or a sweep deletes it.
CREATE TABLE task_locks (
    task_id TEXT PRIMARY KEY,
    instance_id TEXT NOT NULL,
    fence INTEGER NOT NULL CHECK (fence >= 1),
    -- what the claimer called its claim, so that one whose answer was lost can be asked for again (RUN-5a)
    claim_id TEXT NOT NULL CHECK (length(claim_id) BETWEEN 1 AND 200),
    claimed_by TEXT NOT NULL,
    claimed_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    CHECK (expires_at > renewed_at)
)
--sqlite: STRICT, WITHOUT ROWID
--postgres: WITH (fillfactor = 80)
;
CREATE INDEX task_locks_expiry ON task_locks (expires_at);
CREATE INDEX task_locks_instance ON task_locks (instance_id, claim_id);
