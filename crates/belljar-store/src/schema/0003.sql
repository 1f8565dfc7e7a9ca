-- Workflows. What the bytes of a row mean is known above this crate; large ones are blobs, as
-- elsewhere. Numbers of inputs, events and commands are dense, each for itself, per workflow.
CREATE TABLE flows (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    caller TEXT NOT NULL,
    status TEXT NOT NULL,
    -- When somebody has to look after it again, if nobody does.
    due_ms INTEGER NOT NULL,
    owner TEXT NOT NULL,
    fence INTEGER NOT NULL,
    lease_until_ms INTEGER NOT NULL,
    -- No reference: a fork outlives what it came from.
    parent TEXT,
    parent_checkpoint INTEGER,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    finished_ms INTEGER
);
CREATE INDEX flows_by_age ON flows (created_ms, id);
CREATE INDEX flows_under_way ON flows (due_ms) WHERE finished_ms IS NULL;
CREATE INDEX flows_by_parent ON flows (parent) WHERE parent IS NOT NULL;

CREATE TABLE flow_inputs (
    flow_id TEXT NOT NULL REFERENCES flows (id),
    seq INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    -- What the checkpoint after this input is called, if there is one.
    checkpoint TEXT,
    body BLOB,
    body_blob TEXT REFERENCES blobs (id),
    PRIMARY KEY (flow_id, seq)
) WITHOUT ROWID;
CREATE INDEX flow_inputs_by_blob ON flow_inputs (body_blob) WHERE body_blob IS NOT NULL;

-- The state after the input of the same number; number 0 is the state before the first.
CREATE TABLE flow_snapshots (
    flow_id TEXT NOT NULL REFERENCES flows (id),
    seq INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    body BLOB,
    body_blob TEXT REFERENCES blobs (id),
    PRIMARY KEY (flow_id, seq)
) WITHOUT ROWID;
CREATE INDEX flow_snapshots_by_blob ON flow_snapshots (body_blob) WHERE body_blob IS NOT NULL;

-- What is about to be done outside; without `closed_seq`, it may have been done or not.
CREATE TABLE flow_intents (
    flow_id TEXT NOT NULL REFERENCES flows (id),
    key TEXT NOT NULL,
    opened_seq INTEGER NOT NULL,
    closed_seq INTEGER,
    body BLOB,
    body_blob TEXT REFERENCES blobs (id),
    PRIMARY KEY (flow_id, key, opened_seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX flow_intents_open ON flow_intents (flow_id, key) WHERE closed_seq IS NULL;
CREATE INDEX flow_intents_by_blob ON flow_intents (body_blob) WHERE body_blob IS NOT NULL;

CREATE TABLE flow_events (
    flow_id TEXT NOT NULL REFERENCES flows (id),
    seq INTEGER NOT NULL,
    -- The input that caused it.
    cause_seq INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    body BLOB,
    body_blob TEXT REFERENCES blobs (id),
    PRIMARY KEY (flow_id, seq)
) WITHOUT ROWID;
CREATE INDEX flow_events_by_blob ON flow_events (body_blob) WHERE body_blob IS NOT NULL;

CREATE TABLE flow_commands (
    flow_id TEXT NOT NULL REFERENCES flows (id),
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    sender TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    -- The input it became.
    taken_seq INTEGER,
    answered_ms INTEGER,
    body BLOB,
    body_blob TEXT REFERENCES blobs (id),
    answer BLOB,
    answer_blob TEXT REFERENCES blobs (id),
    PRIMARY KEY (flow_id, seq),
    UNIQUE (flow_id, id)
) WITHOUT ROWID;
CREATE INDEX flow_commands_waiting ON flow_commands (flow_id) WHERE taken_seq IS NULL;
CREATE INDEX flow_commands_by_blob ON flow_commands (body_blob) WHERE body_blob IS NOT NULL;
CREATE INDEX flow_commands_by_answer ON flow_commands (answer_blob) WHERE answer_blob IS NOT NULL;

-- Blobs that are named inside the bytes above, where this crate cannot see them.
CREATE TABLE flow_blobs (
    flow_id TEXT NOT NULL REFERENCES flows (id),
    blob_id TEXT NOT NULL REFERENCES blobs (id),
    PRIMARY KEY (flow_id, blob_id)
) WITHOUT ROWID;
CREATE INDEX flow_blobs_by_blob ON flow_blobs (blob_id);
