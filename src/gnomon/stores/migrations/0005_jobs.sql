-- Jobs that the centre pushes to instances, and one trigger for each of their slots (JOB-1, JOB-3).

CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    slug TEXT NOT NULL CHECK (length(slug) BETWEEN 1 AND 64),
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    role TEXT NOT NULL CHECK (length(role) BETWEEN 1 AND 64),
    -- the cadence in full, and of it what the database itself can bound (CAD-1)
    cadence TEXT NOT NULL,
    unit TEXT NOT NULL,
    every INTEGER,
    calendar TEXT,
    anchor_at INTEGER NOT NULL CHECK (anchor_at % 60000000 = 0),
    payload TEXT NOT NULL CHECK (length(payload) <= 100000),
    -- a job without one is refused (IDM-1)
    dedup_key TEXT NOT NULL CHECK (length(dedup_key) BETWEEN 1 AND 500),
    grace_seconds INTEGER CHECK (grace_seconds BETWEEN 1 AND 86400),
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    -- why its next slot can't be computed, where it was set aside for that (DSP-9a)
    error TEXT,
    version INTEGER NOT NULL CHECK (version >= 1),
    next_fire_at INTEGER,
    last_fire_at INTEGER,
    -- the newest slot that has a trigger: kept here, so that cleaning up makes no slot fire again (DSP-9a)
    recorded_until INTEGER,
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
    -- only a job that is enabled and there can match the claim of what is due
    CHECK (next_fire_at IS NULL OR (enabled = 1 AND deleted_at IS NULL)),
    CHECK (error IS NULL OR enabled = 0)
)
--sqlite: STRICT, WITHOUT ROWID
--postgres: WITH (fillfactor = 80)
;
CREATE UNIQUE INDEX jobs_slug ON jobs (slug) WHERE deleted_at IS NULL;
CREATE INDEX jobs_due ON jobs (next_fire_at) WHERE next_fire_at IS NOT NULL;
CREATE INDEX jobs_calendar ON jobs (calendar) WHERE calendar IS NOT NULL AND deleted_at IS NULL;

-- One row for each slot of a job, or for a run of missed ones; it is what is pushed (JOB-3, JOB-4, DSP-7).
CREATE TABLE triggers (
    id TEXT PRIMARY KEY,
    job_id TEXT NOT NULL,
    nominal_fire_at INTEGER NOT NULL,
    dedup_key TEXT NOT NULL CHECK (length(dedup_key) BETWEEN 1 AND 1000),
    -- the job's, as it was when the slot came: sent again it is the same; emptied with the end
    payload TEXT,
    status TEXT NOT NULL
        CHECK (status IN ('pending', 'pushed', 'acknowledged', 'succeeded', 'failed', 'missed')),
    reason TEXT,
    note TEXT CHECK (length(note) <= 10000),
    coalesced_first INTEGER,
    coalesced_last INTEGER,
    coalesced_count INTEGER,
    -- while it has no instance it waits for one, until then
    wait_until INTEGER NOT NULL,
    instance_id TEXT,
    -- the connection over which it was pushed, or by which its instance said that it still has it
    epoch INTEGER,
    -- whom it was taken back from: another one comes first
    taken_from TEXT,
    pushes INTEGER NOT NULL DEFAULT 0 CHECK (pushes >= 0),
    pushed_at INTEGER,
    acknowledged_at INTEGER,
    -- when it has failed, unless the instance that has acknowledged it, and is gone, comes back with it or ends it
    lost_after INTEGER,
    finished_at INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (job_id, nominal_fire_at),
    CHECK ((finished_at IS NOT NULL) = (status IN ('succeeded', 'failed', 'missed'))),
    CHECK (status NOT IN ('pushed', 'acknowledged')
           OR (instance_id IS NOT NULL AND epoch IS NOT NULL AND pushed_at IS NOT NULL AND pushes >= 1)),
    CHECK (status <> 'acknowledged' OR acknowledged_at IS NOT NULL),
    CHECK (status NOT IN ('failed', 'missed') OR reason IS NOT NULL),
    CHECK (status <> 'missed' OR instance_id IS NULL),
    CHECK (finished_at IS NOT NULL OR payload IS NOT NULL),
    CHECK (lost_after IS NULL OR status = 'acknowledged'),
    CHECK ((coalesced_count IS NULL) = (coalesced_first IS NULL)),
    CHECK ((coalesced_count IS NULL) = (coalesced_last IS NULL)),
    CHECK (coalesced_count IS NULL OR (coalesced_count >= 1 AND coalesced_first <= coalesced_last
           AND coalesced_last < nominal_fire_at))
)
--sqlite: STRICT, WITHOUT ROWID
--postgres: WITH (fillfactor = 80)
;
CREATE INDEX triggers_held ON triggers (instance_id) WHERE finished_at IS NULL AND instance_id IS NOT NULL;
CREATE INDEX triggers_waiting ON triggers (wait_until) WHERE finished_at IS NULL AND instance_id IS NULL;
CREATE INDEX triggers_lost ON triggers (lost_after) WHERE lost_after IS NOT NULL;
