-- Values over 16 KiB of the tables below are here, once each, by content. `bytes` comes last: the
-- other columns are read without it.
CREATE TABLE blobs (
    id TEXT NOT NULL PRIMARY KEY,
    hash BLOB NOT NULL,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    last_used_ms INTEGER NOT NULL,
    bytes BLOB NOT NULL
);
CREATE INDEX blobs_by_age ON blobs (last_used_ms, created_ms);

CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    caller TEXT NOT NULL,
    language TEXT NOT NULL,
    durable INTEGER NOT NULL,
    seed TEXT NOT NULL,
    status TEXT NOT NULL,
    owner TEXT NOT NULL,
    fence INTEGER NOT NULL,
    claimed_ms INTEGER NOT NULL,
    started_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    finished_ms INTEGER,
    code TEXT,
    code_blob TEXT REFERENCES blobs (id),
    request TEXT,
    request_blob TEXT REFERENCES blobs (id),
    result TEXT,
    result_blob TEXT REFERENCES blobs (id)
);
CREATE INDEX runs_by_age ON runs (started_ms, id);
CREATE INDEX runs_by_code_blob ON runs (code_blob) WHERE code_blob IS NOT NULL;
CREATE INDEX runs_by_request_blob ON runs (request_blob) WHERE request_blob IS NOT NULL;
CREATE INDEX runs_by_result_blob ON runs (result_blob) WHERE result_blob IS NOT NULL;

-- One tree, no separate index: an append is synchronised with as few pages as possible.
CREATE TABLE journal (
    run_id TEXT NOT NULL REFERENCES runs (id),
    seq INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    call INTEGER NOT NULL,
    head TEXT NOT NULL,
    body BLOB,
    body_blob TEXT REFERENCES blobs (id),
    PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
CREATE INDEX journal_by_blob ON journal (body_blob) WHERE body_blob IS NOT NULL;

-- No reference to `runs`: a run that is not kept may ask, too.
CREATE TABLE approvals (
    id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL,
    call INTEGER NOT NULL,
    kind TEXT NOT NULL,
    tool TEXT NOT NULL,
    caller TEXT NOT NULL,
    line INTEGER,
    code_line TEXT,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    state TEXT NOT NULL,
    decided_by TEXT,
    decided_ms INTEGER,
    arguments TEXT,
    arguments_blob TEXT REFERENCES blobs (id),
    UNIQUE (run_id, call, kind)
);
CREATE INDEX approvals_pending ON approvals (expires_ms) WHERE state = 'pending';
CREATE INDEX approvals_by_blob ON approvals (arguments_blob) WHERE arguments_blob IS NOT NULL;

CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    call INTEGER NOT NULL,
    tool TEXT NOT NULL,
    decision TEXT NOT NULL,
    reason TEXT NOT NULL,
    caller TEXT NOT NULL,
    argument_hash TEXT NOT NULL,
    started_ms INTEGER NOT NULL,
    duration_ms REAL NOT NULL,
    outcome TEXT NOT NULL
);
CREATE INDEX audit_by_run ON audit (run_id);
CREATE INDEX audit_by_tool ON audit (tool);

CREATE TABLE cache (
    key TEXT NOT NULL PRIMARY KEY,
    size INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    value BLOB NOT NULL
);
CREATE INDEX cache_by_age ON cache (created_ms);
CREATE INDEX cache_by_expiry ON cache (expires_ms);

CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    name TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX events_by_run ON events (run_id, seq);

CREATE TABLE shapes (
    tool TEXT NOT NULL PRIMARY KEY,
    learned_ms INTEGER NOT NULL,
    shape TEXT NOT NULL
);
