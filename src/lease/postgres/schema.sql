CREATE TABLE IF NOT EXISTS verger_leases (
    name text PRIMARY KEY,
    -- The fencing token of the last grant. Never delete a row: its tokens would begin with 1 again.
    epoch bigint NOT NULL,
    holder text NOT NULL,
    -- By the clock of the server.
    expires_at timestamptz NOT NULL,
    -- Makes a fenced transaction delay the next grant, but no renewal.
    UNIQUE (name, epoch)
);
COMMENT ON TABLE verger_leases IS 'verger leases, schema version 1';
