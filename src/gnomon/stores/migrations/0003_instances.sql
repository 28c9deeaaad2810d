-- Instances: live processes of a role, what is pushed to them, and keys that are bound to a role (JOB-5, TGT-1).

-- One row for each (role, name), whatever it comes by: a WebSocket that a server holds, or requests. Each new connection
-- raises the epoch, and what an older one leaves behind changes nothing under the new.
CREATE TABLE instances (
    id TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (length(role) BETWEEN 1 AND 64),
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    status TEXT NOT NULL CHECK (status IN ('online', 'draining', 'offline')),
    epoch INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    -- the process that holds its connection; NULL: it has none
    server TEXT,
    version TEXT CHECK (length(version) BETWEEN 1 AND 200),
    max_in_flight INTEGER NOT NULL DEFAULT 1 CHECK (max_in_flight BETWEEN 1 AND 1000),
    connected_at INTEGER,
    last_heartbeat_at INTEGER NOT NULL,
    -- when work was last pushed to it: the least recently used one comes first (JOB-2); 0: never
    last_chosen_at INTEGER NOT NULL DEFAULT 0,
    -- when a person asked it to drain: that outlives a reconnect, its own word does not
    drain_asked_at INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (role, name),
    CHECK (server IS NULL OR (connected_at IS NOT NULL AND epoch > 0)),
    CHECK (server IS NULL OR status <> 'offline'),
    CHECK (drain_asked_at IS NULL OR status = 'draining')
)
--sqlite: STRICT, WITHOUT ROWID
--postgres: WITH (fillfactor = 80)
;
CREATE INDEX instances_choice ON instances (role, last_chosen_at) WHERE status = 'online' AND server IS NOT NULL;
CREATE INDEX instances_silence ON instances (last_heartbeat_at) WHERE status <> 'offline';
CREATE INDEX instances_server ON instances (server) WHERE server IS NOT NULL;

-- Attempts that are pushed to an instance, each under its run's fence; a team's nodes have a row each (TGT-1).
CREATE TABLE run_pushes (
    run_id TEXT NOT NULL,
    node TEXT NOT NULL, -- empty: the run of an agent
    fence INTEGER NOT NULL,
    role TEXT NOT NULL,
    status TEXT NOT NULL
        CHECK (status IN ('waiting', 'pending', 'pushed', 'acknowledged', 'succeeded', 'failed', 'withdrawn')),
    instance_id TEXT,
    epoch INTEGER,
    -- the run_trigger as it is sent, for whichever server holds the connection; emptied with the end
    frame TEXT NOT NULL,
    -- what the instance is to be told of a push that is withdrawn, and whether it was
    withdrawal TEXT CHECK (withdrawal IN ('cancel', 'revoke')),
    told INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1)),
    pushes INTEGER NOT NULL DEFAULT 0,
    output TEXT,
    usage TEXT,
    error_code TEXT,
    error TEXT,
    retryable INTEGER NOT NULL DEFAULT 0 CHECK (retryable IN (0, 1)),
    created_at INTEGER NOT NULL,
    pushed_at INTEGER,
    acknowledged_at INTEGER,
    finished_at INTEGER,
    PRIMARY KEY (run_id, node, fence),
    CHECK ((instance_id IS NULL) = (epoch IS NULL)),
    CHECK (status <> 'waiting' OR instance_id IS NULL),
    CHECK (status NOT IN ('pending', 'pushed', 'acknowledged') OR instance_id IS NOT NULL),
    CHECK ((finished_at IS NOT NULL) = (status IN ('succeeded', 'failed', 'withdrawn'))),
    CHECK ((withdrawal IS NULL) OR (status = 'withdrawn'))
)
--sqlite: STRICT, WITHOUT ROWID
--postgres: WITH (fillfactor = 80)
;
CREATE INDEX run_pushes_open ON run_pushes (run_id) WHERE finished_at IS NULL;
CREATE INDEX run_pushes_held ON run_pushes (instance_id) WHERE finished_at IS NULL AND instance_id IS NOT NULL;
CREATE INDEX run_pushes_untold ON run_pushes (instance_id) WHERE withdrawal IS NOT NULL AND told = 0;
CREATE INDEX run_pushes_finished ON run_pushes (finished_at) WHERE finished_at IS NOT NULL;

-- A key that serves one role: what connects or claims with it is of that role, or is refused (SEC-3).
ALTER TABLE api_keys ADD COLUMN role TEXT CHECK (length(role) BETWEEN 1 AND 64);
