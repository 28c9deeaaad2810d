-- The house: agents, teams, schedules, their slots and runs, sessions, keys, audit, processes.
--
-- One text for both engines. A line that only one engine reads starts with its name in a comment mark, --sqlite: or
-- --postgres:. Instants are INTEGER microseconds since 1970 (UTC), durations INTEGER seconds, JSON is TEXT.

-- The database's clock has one value for the whole of a statement: microseconds since 1970 (UTC).
--postgres: CREATE FUNCTION now_us() RETURNS BIGINT LANGUAGE sql STABLE PARALLEL SAFE
--postgres: AS $$ SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::BIGINT $$;
-- SQLite's function of this name, as far as it is used here: the texts of a JSON array, one row each.
--postgres: CREATE FUNCTION json_each(list TEXT) RETURNS TABLE (value TEXT) LANGUAGE sql STABLE PARALLEL SAFE ROWS 100
--postgres: AS $$ SELECT json_array_elements_text(list::json) $$;

CREATE TABLE processes (
    id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    version TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    stopped_at INTEGER,
    ticked_at INTEGER,
    tick_lag_us INTEGER,
    zone_data TEXT
)
--sqlite: STRICT, WITHOUT ROWID
;

CREATE TABLE agents (
    id TEXT PRIMARY KEY,
    slug TEXT NOT NULL CHECK (length(slug) BETWEEN 1 AND 64),
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    runtime TEXT NOT NULL,
    timeout_seconds INTEGER NOT NULL CHECK (timeout_seconds BETWEEN 1 AND 86400),
    daily_cap INTEGER CHECK (daily_cap BETWEEN 1 AND 1000000),
    limits TEXT NOT NULL DEFAULT '{}',
    secret TEXT,
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
)
--sqlite: STRICT, WITHOUT ROWID
;
CREATE UNIQUE INDEX agents_slug ON agents (slug) WHERE deleted_at IS NULL;

CREATE TABLE teams (
    id TEXT PRIMARY KEY,
    slug TEXT NOT NULL CHECK (length(slug) BETWEEN 1 AND 64),
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    nodes TEXT NOT NULL,
    output TEXT NOT NULL,
    daily_cap INTEGER CHECK (daily_cap BETWEEN 1 AND 1000000),
    limits TEXT NOT NULL DEFAULT '{}',
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
)
--sqlite: STRICT, WITHOUT ROWID
;
CREATE UNIQUE INDEX teams_slug ON teams (slug) WHERE deleted_at IS NULL;

CREATE TABLE calendars (
    id TEXT PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE CHECK (length(slug) BETWEEN 1 AND 64),
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    dates TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL
)
--sqlite: STRICT, WITHOUT ROWID
;

CREATE TABLE schedules (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    target_kind TEXT NOT NULL CHECK (target_kind IN ('agent', 'team')),
    target_id TEXT NOT NULL,
    -- the cadence in full, and of it what the database itself can bound (CAD-1)
    cadence TEXT NOT NULL,
    unit TEXT NOT NULL,
    every INTEGER,
    calendar TEXT,
    anchor_at INTEGER NOT NULL CHECK (anchor_at % 60000000 = 0),
    query TEXT NOT NULL CHECK (length(query) <= 100000),
    session_mode TEXT NOT NULL CHECK (session_mode IN ('fresh', 'fixed')),
    session_id TEXT,
    starts_at INTEGER,
    ends_at INTEGER,
    max_runs INTEGER CHECK (max_runs BETWEEN 1 AND 1000000000),
    overlap TEXT NOT NULL CHECK (overlap IN ('skip', 'queue_one', 'cancel_running', 'allow')),
    catch_up TEXT NOT NULL CHECK (catch_up IN ('latest', 'none')),
    misfire_grace_seconds INTEGER CHECK (misfire_grace_seconds BETWEEN 1 AND 86400),
    timeout_seconds INTEGER NOT NULL CHECK (timeout_seconds BETWEEN 1 AND 86400),
    max_attempts INTEGER NOT NULL CHECK (max_attempts BETWEEN 1 AND 10),
    backoff_seconds INTEGER NOT NULL CHECK (backoff_seconds BETWEEN 0 AND 86400),
    backoff_max_seconds INTEGER NOT NULL CHECK (backoff_max_seconds BETWEEN 0 AND 86400),
    failure_limit INTEGER NOT NULL CHECK (failure_limit BETWEEN 1 AND 100),
    on_lost TEXT NOT NULL CHECK (on_lost IN ('fail', 'resume')),
    jitter_seconds INTEGER NOT NULL CHECK (jitter_seconds BETWEEN 0 AND 86400),
    invoke_as TEXT,
    scopes TEXT NOT NULL DEFAULT '[]',
    dedup_key TEXT,
    -- where it stands
    status TEXT NOT NULL CHECK (status IN ('active', 'paused', 'completed', 'error', 'disabled')),
    status_by TEXT NOT NULL,
    status_at INTEGER NOT NULL,
    status_reason TEXT,
    status_until INTEGER,
    revision INTEGER NOT NULL CHECK (revision >= 1),
    next_fire_at INTEGER,
    last_fire_at INTEGER,
    recorded_until INTEGER,
    run_count INTEGER NOT NULL DEFAULT 0,
    failure_streak INTEGER NOT NULL DEFAULT 0,
    last_error_code TEXT,
    last_error TEXT,
    in_flight_run_id TEXT,
    waiting_run_id TEXT,
    fence INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    deleted_at INTEGER,
    CHECK (
        (unit = 'once' AND every IS NULL)
        OR (unit IN ('cron', 'rrule') AND every IS NULL)
        OR (unit = 'minute' AND every IS NOT NULL AND every BETWEEN 5 AND 1440)
        OR (unit = 'hour' AND every IS NOT NULL AND every BETWEEN 1 AND 168)
        OR (unit = 'day' AND every IS NOT NULL AND every BETWEEN 1 AND 365)
        OR (unit = 'week' AND every IS NOT NULL AND every BETWEEN 1 AND 52)
        OR (unit = 'month' AND every IS NOT NULL AND every BETWEEN 1 AND 24)
    ),
    CHECK (session_mode = 'fresh' OR session_id IS NOT NULL),
    CHECK (ends_at IS NULL OR starts_at IS NULL OR ends_at >= starts_at),
    CHECK (backoff_max_seconds >= backoff_seconds),
    -- only an active schedule can match the claim (SCH-3); a deleted one never does
    CHECK (next_fire_at IS NULL OR status = 'active'),
    CHECK (deleted_at IS NULL OR next_fire_at IS NULL)
)
--sqlite: STRICT, WITHOUT ROWID
--postgres: WITH (fillfactor = 80)
;
CREATE INDEX schedules_due ON schedules (status, next_fire_at) WHERE next_fire_at IS NOT NULL;
CREATE INDEX schedules_target ON schedules (target_kind, target_id);
-- whether a session is still some schedule's own, asked when the last run of it is deleted for its age
CREATE INDEX schedules_session ON schedules (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX schedules_until ON schedules (status_until) WHERE status_until IS NOT NULL;

-- Definitions that an edit has replaced; the newest one is the schedule itself (SCH-4).
CREATE TABLE revisions (
    schedule_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    definition TEXT NOT NULL,
    author TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (schedule_id, revision)
)
--sqlite: STRICT, WITHOUT ROWID
;

-- Each change of status, so that a slot inside a pause can be explained (DSP-9).
CREATE TABLE status_changes (
    schedule_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    status TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    reason TEXT,
    PRIMARY KEY (schedule_id, seq)
)
--sqlite: STRICT, WITHOUT ROWID
;

-- The slot ledger: one row for each slot, or for a run of missed ones (DSP-6, DSP-7, DSP-9).
CREATE TABLE occurrences (
    schedule_id TEXT NOT NULL,
    nominal_fire_at INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    disposition TEXT NOT NULL CHECK (disposition IN ('fired', 'skipped', 'missed')),
    reason TEXT,
    coalesced_first INTEGER,
    coalesced_last INTEGER,
    coalesced_count INTEGER,
    run_id TEXT,
    session_id TEXT,
    links_erased_at INTEGER,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (schedule_id, nominal_fire_at),
    CHECK ((disposition = 'fired') = (reason IS NULL)),
    -- both links, or neither with the stamp (RUN-12); a slot that did not fire has none
    CHECK (
        CASE
            WHEN disposition <> 'fired' THEN run_id IS NULL AND session_id IS NULL AND links_erased_at IS NULL
            WHEN links_erased_at IS NULL THEN run_id IS NOT NULL AND session_id IS NOT NULL
            ELSE run_id IS NULL AND session_id IS NULL
        END
    ),
    CHECK ((coalesced_count IS NULL) = (coalesced_first IS NULL)),
    CHECK ((coalesced_count IS NULL) = (coalesced_last IS NULL)),
    CHECK (coalesced_count IS NULL OR (coalesced_count >= 1 AND coalesced_first <= coalesced_last
           AND coalesced_last < nominal_fire_at))
)
--sqlite: STRICT, WITHOUT ROWID
;
CREATE INDEX occurrences_ranges ON occurrences (schedule_id, coalesced_last) WHERE coalesced_count IS NOT NULL;

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    erased_at INTEGER
)
--sqlite: STRICT, WITHOUT ROWID
;

-- One turn of a session for each run: the query it starts from (the seed of its checkpoints) and the answer in full.
CREATE TABLE turns (
    session_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    query TEXT NOT NULL,
    output TEXT,
    created_at INTEGER NOT NULL,
    answered_at INTEGER,
    PRIMARY KEY (session_id, run_id)
)
--sqlite: STRICT, WITHOUT ROWID
--postgres: WITH (fillfactor = 80)
;

CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    trigger_kind TEXT NOT NULL CHECK (trigger_kind IN ('schedule', 'manual', 'invoke')),
    status TEXT NOT NULL
        CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'timed_out', 'cancelled', 'lost')),
    -- the claim searches these two queues and no other (RUN-1)
    priority INTEGER NOT NULL CHECK (priority IN (0, 10)),
    target_kind TEXT NOT NULL CHECK (target_kind IN ('agent', 'team')),
    target_id TEXT NOT NULL,
    schedule_id TEXT,
    revision INTEGER,
    nominal_fire_at INTEGER,
    session_id TEXT, -- NULL: the run's own, ses_ and the tail of its id
    scheduled_for INTEGER NOT NULL,
    claimable_at INTEGER,
    waits_for TEXT,
    -- its schedule lets runs work side by side, so that others may be unfinished when it ends
    parallel INTEGER NOT NULL DEFAULT 0 CHECK (parallel IN (0, 1)),
    lease_seconds INTEGER NOT NULL,
    lease_until INTEGER,
    owner TEXT,
    claim_id TEXT,
    fence INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER,
    attempt_at INTEGER, -- where it differs from started_at: the second attempt and later
    finished_at INTEGER,
    duration_us INTEGER CHECK (duration_us >= 0),
    cancel_at INTEGER,
    cancel_by TEXT,
    half_done INTEGER NOT NULL DEFAULT 0 CHECK (half_done IN (0, 1)),
    -- its target took the work with a 202 and completes it itself: no process is needed for that
    deferred INTEGER NOT NULL DEFAULT 0 CHECK (deferred IN (0, 1)),
    trace_id TEXT,
    model_calls INTEGER,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cost REAL,
    response_preview TEXT,
    error_code TEXT,
    error TEXT,
    invoked_by TEXT,
    api_key_id TEXT,
    source TEXT,
    dedup_key TEXT,
    -- a run is claimable only while queued, leased only while running
    CHECK (claimable_at IS NULL OR status = 'queued'),
    CHECK ((lease_until IS NOT NULL) = (status = 'running')),
    CHECK ((owner IS NOT NULL) OR (status <> 'running')),
    CHECK ((finished_at IS NOT NULL) = (status NOT IN ('queued', 'running')))
)
--sqlite: STRICT, WITHOUT ROWID
--postgres: WITH (fillfactor = 80)
;
CREATE INDEX runs_queue ON runs (priority, claimable_at) WHERE claimable_at IS NOT NULL;
CREATE INDEX runs_leases ON runs (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX runs_waiting ON runs (waits_for) WHERE waits_for IS NOT NULL;
CREATE INDEX runs_parallel ON runs (schedule_id) WHERE parallel = 1 AND finished_at IS NULL;
CREATE INDEX runs_cancels ON runs (owner) WHERE cancel_at IS NOT NULL AND finished_at IS NULL;
CREATE INDEX runs_unscheduled ON runs (schedule_id, id) WHERE nominal_fire_at IS NULL AND schedule_id IS NOT NULL;

-- Attempts that ended without ending their run; the last one is the run's own row (RUN-9).
CREATE TABLE attempts (
    run_id TEXT NOT NULL,
    fence INTEGER NOT NULL,
    number INTEGER NOT NULL,
    worker TEXT,
    started_at INTEGER,
    finished_at INTEGER,
    outcome TEXT NOT NULL,
    error_code TEXT,
    error TEXT,
    PRIMARY KEY (run_id, number, fence)
)
--sqlite: STRICT, WITHOUT ROWID
;

-- Finished nodes of a team's run, so that a resume does not run them again (TGT-3).
CREATE TABLE checkpoints (
    run_id TEXT NOT NULL,
    node TEXT NOT NULL,
    fence INTEGER NOT NULL,
    output TEXT NOT NULL,
    usage TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, node)
)
--sqlite: STRICT, WITHOUT ROWID
;

-- What a run reports while it works, for its event stream (TGT-2).
CREATE TABLE run_events (
    run_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
)
--sqlite: STRICT, WITHOUT ROWID
;

CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    scopes TEXT NOT NULL DEFAULT '[]',
    target_kind TEXT CHECK (target_kind IN ('agent', 'team')),
    target_id TEXT,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER,
    last_used_at INTEGER,
    revoked_at INTEGER,
    CHECK ((target_kind IS NULL) = (target_id IS NULL)),
    CHECK (target_kind IS NULL OR scopes = '[]')
)
--sqlite: STRICT, WITHOUT ROWID
;

-- What the centre drew for itself at its first start: the pepper of the keys' hashes (SEC-3).
CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
)
--sqlite: STRICT, WITHOUT ROWID
;

-- Answers kept under an Idempotency-Key, written in the same transaction as their effect (IDM-2). An answer is sealed
-- with the API key that asked; one that is missing means that the effect is still going on.
CREATE TABLE idempotency_keys (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    answer BLOB,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
)
--sqlite: STRICT, WITHOUT ROWID
;
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

CREATE TABLE audit (
--sqlite: seq INTEGER PRIMARY KEY AUTOINCREMENT,
--postgres: seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject_kind TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    fence INTEGER,
    detail TEXT
)
--sqlite: STRICT
;

-- How far the ledger and the audit may be cleaned: what is younger can't be deleted by anybody (DSP-9a, SEC-7).
CREATE TABLE retention_floor (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    occurrences_before INTEGER NOT NULL,
    audit_before INTEGER NOT NULL
)
--sqlite: STRICT
;
INSERT INTO retention_floor (id, occurrences_before, audit_before) VALUES (1, 0, 0);

--sqlite: CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
--sqlite: BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
--sqlite: CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
--sqlite: WHEN OLD.at >= (SELECT audit_before FROM retention_floor)
--sqlite: BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
--sqlite: CREATE TRIGGER occurrences_no_delete BEFORE DELETE ON occurrences
--sqlite: WHEN OLD.nominal_fire_at >= (SELECT occurrences_before FROM retention_floor)
--sqlite: BEGIN SELECT RAISE(ABORT, 'the slot ledger is append-only'); END;
--sqlite: CREATE TRIGGER occurrences_no_update BEFORE UPDATE ON occurrences
--sqlite: WHEN OLD.links_erased_at IS NOT NULL OR NEW.links_erased_at IS NULL
--sqlite:   OR OLD.schedule_id IS NOT NEW.schedule_id OR OLD.nominal_fire_at IS NOT NEW.nominal_fire_at
--sqlite:   OR OLD.revision IS NOT NEW.revision OR OLD.disposition IS NOT NEW.disposition
--sqlite:   OR OLD.reason IS NOT NEW.reason OR OLD.created_at IS NOT NEW.created_at
--sqlite:   OR OLD.coalesced_first IS NOT NEW.coalesced_first OR OLD.coalesced_last IS NOT NEW.coalesced_last
--sqlite:   OR OLD.coalesced_count IS NOT NEW.coalesced_count
--sqlite: BEGIN SELECT RAISE(ABORT, 'the slot ledger is append-only'); END;
--sqlite: CREATE TRIGGER retention_floor_rises BEFORE UPDATE ON retention_floor
--sqlite: WHEN NEW.occurrences_before < OLD.occurrences_before OR NEW.audit_before < OLD.audit_before
--sqlite: BEGIN SELECT RAISE(ABORT, 'the retention floor only rises'); END;
--sqlite: CREATE TRIGGER retention_floor_stays BEFORE DELETE ON retention_floor
--sqlite: BEGIN SELECT RAISE(ABORT, 'the retention floor stays'); END;

--postgres: CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
--postgres: BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$;
--postgres: CREATE FUNCTION audit_floor() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
--postgres: BEGIN
--postgres:   IF OLD.at >= (SELECT audit_before FROM retention_floor) THEN
--postgres:     RAISE EXCEPTION 'the audit log is append-only';
--postgres:   END IF;
--postgres:   RETURN OLD;
--postgres: END $$;
--postgres: CREATE FUNCTION occurrences_floor() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
--postgres: BEGIN
--postgres:   IF OLD.nominal_fire_at >= (SELECT occurrences_before FROM retention_floor) THEN
--postgres:     RAISE EXCEPTION 'the slot ledger is append-only';
--postgres:   END IF;
--postgres:   RETURN OLD;
--postgres: END $$;
--postgres: CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit FOR EACH ROW
--postgres: EXECUTE FUNCTION append_only('the audit log is append-only');
--postgres: CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_floor();
--postgres: CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit
--postgres: EXECUTE FUNCTION append_only('the audit log is append-only');
--postgres: CREATE TRIGGER occurrences_no_delete BEFORE DELETE ON occurrences FOR EACH ROW
--postgres: EXECUTE FUNCTION occurrences_floor();
--postgres: CREATE TRIGGER occurrences_no_truncate BEFORE TRUNCATE ON occurrences
--postgres: EXECUTE FUNCTION append_only('the slot ledger is append-only');
--postgres: CREATE TRIGGER occurrences_no_update BEFORE UPDATE ON occurrences FOR EACH ROW
--postgres: WHEN (OLD.links_erased_at IS NOT NULL OR NEW.links_erased_at IS NULL
--postgres:   OR OLD.schedule_id IS DISTINCT FROM NEW.schedule_id
--postgres:   OR OLD.nominal_fire_at IS DISTINCT FROM NEW.nominal_fire_at
--postgres:   OR OLD.revision IS DISTINCT FROM NEW.revision OR OLD.disposition IS DISTINCT FROM NEW.disposition
--postgres:   OR OLD.reason IS DISTINCT FROM NEW.reason OR OLD.created_at IS DISTINCT FROM NEW.created_at
--postgres:   OR OLD.coalesced_first IS DISTINCT FROM NEW.coalesced_first
--postgres:   OR OLD.coalesced_last IS DISTINCT FROM NEW.coalesced_last
--postgres:   OR OLD.coalesced_count IS DISTINCT FROM NEW.coalesced_count)
--postgres: EXECUTE FUNCTION append_only('the slot ledger is append-only');
--postgres: CREATE TRIGGER retention_floor_rises BEFORE UPDATE ON retention_floor FOR EACH ROW
--postgres: WHEN (NEW.occurrences_before < OLD.occurrences_before OR NEW.audit_before < OLD.audit_before)
--postgres: EXECUTE FUNCTION append_only('the retention floor only rises');
--postgres: CREATE TRIGGER retention_floor_stays BEFORE DELETE ON retention_floor FOR EACH ROW
--postgres: EXECUTE FUNCTION append_only('the retention floor stays');
--postgres: CREATE TRIGGER retention_floor_no_truncate BEFORE TRUNCATE ON retention_floor
--postgres: EXECUTE FUNCTION append_only('the retention floor stays');
