/** Steps of the ledger's schema; `migrations[n]` takes version n to n + 1. Times are epoch milliseconds. Never edit one that was released. */
export const migrations: readonly string[] = [
  `
  CREATE TABLE batches (
    key INTEGER PRIMARY KEY,
    service TEXT NOT NULL,
    id TEXT NOT NULL,
    suite TEXT NOT NULL,
    file TEXT,
    started_at INTEGER NOT NULL,
    UNIQUE (service, id)
  ) STRICT;

  CREATE TABLE runs (
    key INTEGER PRIMARY KEY,
    batch INTEGER NOT NULL REFERENCES batches (key),
    id TEXT NOT NULL,
    task_index INTEGER NOT NULL,
    case_id TEXT NOT NULL,
    case_name TEXT NOT NULL,
    variant TEXT NOT NULL,
    memory TEXT NOT NULL, -- JSON: what the run record's setup has no place for
    UNIQUE (batch, id)
  ) STRICT;

  CREATE TABLE trials (
    key INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (key),
    ordinal INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'finished')),
    verdict TEXT CHECK (verdict IN ('passed', 'failed', 'void')),
    result TEXT, -- sha256 of the blob with the whole result as JSON
    finished_at INTEGER,
    UNIQUE (run, ordinal),
    CHECK ((state = 'finished') = (result IS NOT NULL))
  ) STRICT;

  CREATE TABLE attempts (
    key INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trials (key),
    number INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    ending TEXT, -- how it ended: passed, failed, void, canceled
    cause TEXT, -- JSON, where it ended without a verdict
    UNIQUE (trial, number)
  ) STRICT;

  CREATE TABLE reports (
    trial INTEGER PRIMARY KEY REFERENCES trials (key),
    body TEXT NOT NULL, -- sha256 of the blob with the reported trial as JSON
    state TEXT NOT NULL CHECK (state IN ('queued', 'delivered', 'parked')),
    tries INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL,
    answer TEXT -- what the service said last, where it was not a success
  ) STRICT;

  CREATE INDEX reports_due ON reports (state, next_at);
  `,
];
