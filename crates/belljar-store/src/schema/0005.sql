-- Values that a result names by a handle, inside text this crate does not read. No reference to
-- `runs`: a run that is not kept may have given out handles, too.
CREATE TABLE run_blobs (
    run_id TEXT NOT NULL,
    blob_id TEXT NOT NULL REFERENCES blobs (id),
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (run_id, blob_id)
) WITHOUT ROWID;
CREATE INDEX run_blobs_by_blob ON run_blobs (blob_id);
INSERT INTO run_blobs
    SELECT runs.id, blobs.id, runs.updated_ms FROM runs
    JOIN blobs ON blobs.id = CASE WHEN json_valid(runs.result)
        THEN json_extract(runs.result, '$.result.handle') END;

-- The same of answers in the cache, for as long as they are there.
CREATE TABLE cache_blobs (
    key TEXT NOT NULL REFERENCES cache (key) ON DELETE CASCADE,
    blob_id TEXT NOT NULL REFERENCES blobs (id),
    PRIMARY KEY (key, blob_id)
) WITHOUT ROWID;
CREATE INDEX cache_blobs_by_blob ON cache_blobs (blob_id);

-- What may go, by the time it was over.
CREATE INDEX runs_by_end ON runs (coalesce(finished_ms, updated_ms))
    WHERE finished_ms IS NOT NULL OR status = 'aborted';
CREATE INDEX approvals_by_end ON approvals (coalesce(decided_ms, expires_ms));
CREATE INDEX sessions_by_end ON sessions (ended_ms) WHERE ended_ms IS NOT NULL;
CREATE INDEX flows_by_end ON flows (finished_ms) WHERE finished_ms IS NOT NULL;
