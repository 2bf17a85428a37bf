CREATE TABLE IF NOT EXISTS verger_leases (
    name text PRIMARY KEY,
    -- The fencing token of the last grant. Never delete a row: its tokens would begin with 1 again.
    epoch bigint NOT NULL,
    holder text NOT NULL,
    -- By the clock of the server.
    expires_at timestamptz NOT NULL,
    -- Up to 64 bytes, from one holder to the next.
    memo bytea NOT NULL DEFAULT '',
    -- Makes a fenced transaction delay the next grant, but no renewal.
    UNIQUE (name, epoch)
);
-- For a table of version 1.
ALTER TABLE verger_leases ADD COLUMN IF NOT EXISTS memo bytea NOT NULL DEFAULT '';
COMMENT ON TABLE verger_leases IS 'verger leases, schema version 2';
