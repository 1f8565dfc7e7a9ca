-- What a call gave, as a person says who was asked whether it had happened.
ALTER TABLE approvals ADD COLUMN result TEXT;
-- How often in a row hosts took a run up by themselves, died, and it got no further.
ALTER TABLE runs ADD COLUMN vain INTEGER NOT NULL DEFAULT 0;
-- Runs that are under way, or wait to go on.
CREATE INDEX runs_unfinished ON runs (started_ms, id) WHERE finished_ms IS NULL AND status <> 'aborted';

-- Every call waits for its audit row. Without the index by tool and the counter of AUTOINCREMENT a
-- row changes two pages instead of four. Only the oldest rows are ever removed, so a number does not
-- come twice while the newest row is there.
CREATE TABLE audit_slim (
    id INTEGER PRIMARY KEY,
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
INSERT INTO audit_slim SELECT * FROM audit;
DROP TABLE audit;
ALTER TABLE audit_slim RENAME TO audit;
CREATE INDEX audit_by_run ON audit (run_id);
