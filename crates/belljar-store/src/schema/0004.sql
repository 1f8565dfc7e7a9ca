-- How often in a row hosts took a workflow up by themselves and did not get any further with it.
ALTER TABLE flows ADD COLUMN vain INTEGER NOT NULL DEFAULT 0;
