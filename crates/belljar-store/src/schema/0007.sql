-- What a yes may cover beyond its call: the longest scope that may be given, the session of the run, and a
-- hash of the tool's definition and of its server's configuration.
ALTER TABLE approvals ADD COLUMN widest TEXT NOT NULL DEFAULT 'once';
ALTER TABLE approvals ADD COLUMN session_id TEXT;
ALTER TABLE approvals ADD COLUMN definition TEXT NOT NULL DEFAULT '';
-- The yes that was given: its scope, and the rule that it covers.
ALTER TABLE approvals ADD COLUMN scope TEXT NOT NULL DEFAULT 'once';
ALTER TABLE approvals ADD COLUMN rule TEXT;
CREATE INDEX approvals_by_session ON approvals (session_id) WHERE session_id IS NOT NULL;
