-- What is left of a session when its host is gone: that it was, and why it is not any more.
CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    caller TEXT NOT NULL,
    language TEXT NOT NULL,
    owner TEXT NOT NULL,
    forked_from TEXT,
    created_ms INTEGER NOT NULL,
    last_used_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    end_code TEXT,
    end_reason TEXT
);
CREATE INDEX sessions_by_age ON sessions (created_ms, id);
CREATE INDEX sessions_that_live ON sessions (owner) WHERE ended_ms IS NULL;
