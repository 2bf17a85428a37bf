CREATE SCHEMA IF NOT EXISTS jobs_example;

-- A job is waiting until `done_at` is set. `token` is the fencing token of the scheduler that has added it.
CREATE TABLE IF NOT EXISTS jobs_example.jobs (
    number bigint PRIMARY KEY,
    token bigint NOT NULL,
    done_at timestamptz
);

CREATE INDEX IF NOT EXISTS jobs_waiting ON jobs_example.jobs (number) WHERE done_at IS NULL;

-- A row for each job that has run to its end. Without a unique index, so that a job that runs twice is seen, and not
-- only refused.
CREATE TABLE IF NOT EXISTS jobs_example.ledger (
    job bigint NOT NULL REFERENCES jobs_example.jobs,
    worker text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One row: whether the scheduler adds jobs.
CREATE TABLE IF NOT EXISTS jobs_example.schedule (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    is_open boolean NOT NULL DEFAULT true
);

INSERT INTO jobs_example.schedule DEFAULT VALUES ON CONFLICT DO NOTHING;
