/**
 * The steps of service.db's schema; `migrations[n]` takes version n to n + 1. Times are epoch milliseconds.
 * Texts with arbitrary content from a sender are inside JSON columns, because JSON keeps NUL and lone
 * surrogates, which a TEXT column would not. Never edit a released step.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE organizations (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    slug TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    organization INTEGER NOT NULL REFERENCES organizations (key),
    hash BLOB NOT NULL UNIQUE, -- sha256 of the secret
    start TEXT,
    name TEXT,
    permissions TEXT NOT NULL, -- JSON
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
  ) STRICT;

  CREATE TABLE batches (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    organization INTEGER NOT NULL REFERENCES organizations (key),
    suite TEXT NOT NULL, -- JSON
    suite_name TEXT NOT NULL, -- JSON: {id, name}
    trials INTEGER NOT NULL,
    local INTEGER NOT NULL,
    trigger TEXT, -- JSON, as run records carry it
    created_at INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE batch_cases (
    key INTEGER PRIMARY KEY,
    batch INTEGER NOT NULL REFERENCES batches (key),
    case_name TEXT NOT NULL, -- JSON: {id, name}
    definition TEXT NOT NULL, -- JSON, as it was sent
    setup TEXT NOT NULL -- JSON, variables expanded: shared by the case's runs
  ) STRICT;

  CREATE TABLE runs (
    key INTEGER PRIMARY KEY AUTOINCREMENT, -- grows with time: the order of lists
    id TEXT NOT NULL UNIQUE,
    organization INTEGER NOT NULL REFERENCES organizations (key),
    batch INTEGER NOT NULL REFERENCES batches (key),
    batch_case INTEGER NOT NULL REFERENCES batch_cases (key),
    task_index INTEGER NOT NULL,
    case_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    model TEXT NOT NULL,
    variant TEXT NOT NULL, -- JSON
    definition_hash TEXT NOT NULL,
    local INTEGER NOT NULL,
    trials INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    UNIQUE (batch, task_index)
  ) STRICT;
  CREATE INDEX runs_of_case ON runs (organization, case_id);
  CREATE INDEX runs_of_variant ON runs (organization, case_id, variant_id);
  CREATE INDEX runs_of_model ON runs (organization, case_id, model);
  CREATE INDEX runs_of_cell ON runs (batch, case_id, variant_id);
  CREATE INDEX runs_for_baseline ON runs (organization, case_id, variant_id) WHERE local = 0;

  -- How many runs a list has, so that no query counts them.
  CREATE TABLE run_totals (
    organization INTEGER NOT NULL REFERENCES organizations (key),
    case_id TEXT NOT NULL,
    filter TEXT NOT NULL CHECK (filter IN ('all', 'variant', 'model')),
    value TEXT NOT NULL,
    total INTEGER NOT NULL,
    PRIMARY KEY (organization, case_id, filter, value)
  ) STRICT, WITHOUT ROWID;

  -- A trial has a row after it has ended, and a report is this one row: a run's state follows from its
  -- trials. The key needs no separate index; a run has at most 10 trials. The columns before the JSON are
  -- read without it.
  CREATE TABLE trials (
    key INTEGER PRIMARY KEY, -- the run's key * 16 + the ordinal
    verdict TEXT NOT NULL CHECK (verdict IN ('passed', 'failed', 'void')),
    commands REAL,
    cost_usd REAL,
    ended_at INTEGER NOT NULL,
    leftovers TEXT NOT NULL, -- JSON: what the report said and a run record has no field for
    record TEXT NOT NULL -- JSON, as run records carry it
  ) STRICT;

  CREATE TABLE cases (
    organization INTEGER NOT NULL REFERENCES organizations (key),
    suite_id TEXT NOT NULL,
    case_id TEXT NOT NULL,
    entry TEXT NOT NULL, -- JSON, as evals.cases.list answers it
    PRIMARY KEY (organization, suite_id, case_id)
  ) STRICT;

  CREATE TABLE prompt_versions (
    organization INTEGER NOT NULL REFERENCES organizations (key),
    prompt_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    content TEXT NOT NULL, -- JSON
    created_at INTEGER NOT NULL,
    PRIMARY KEY (organization, prompt_id, version)
  ) STRICT;

  CREATE TABLE channels (
    organization INTEGER NOT NULL,
    prompt_id TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (organization, prompt_id, name),
    FOREIGN KEY (organization, prompt_id, version)
      REFERENCES prompt_versions (organization, prompt_id, version)
  ) STRICT;
  `,
  `
  -- The platform's runs whose trials have not all ended. It stays small, so that reading it does not depend
  -- on how many runs there were.
  CREATE TABLE open_runs (run INTEGER PRIMARY KEY REFERENCES runs (key)) STRICT;

  -- What a platform's trial has in addition to its row in trials, and what sums need of it. It is a table of
  -- its own, because columns behind the JSON of trials could be read only past that.
  CREATE TABLE completed_trials (
    key INTEGER PRIMARY KEY REFERENCES trials (key),
    harness_version TEXT, -- JSON
    profile_version TEXT, -- JSON
    costs TEXT -- JSON, as run records carry them
  ) STRICT;

  -- For baselines: the cells of a case, the runs of a cell, newest first, and those of one definition. Only
  -- runs of the platform have a suite's id here; there were none before.
  ALTER TABLE runs ADD COLUMN suite_id TEXT;
  DROP INDEX runs_for_baseline;
  CREATE INDEX runs_of_baseline ON runs (organization, case_id, suite_id, variant_id) WHERE local = 0;
  CREATE INDEX runs_of_definition ON runs (organization, case_id, suite_id, variant_id, definition_hash)
    WHERE local = 0;
  `,
  // Setups are made when they are read.
  'ALTER TABLE batch_cases DROP COLUMN setup',
  `
  -- Who may run a trial that has not ended. A lease that has expired keeps its row, because the next lease of
  -- the trial has the next attempt number.
  CREATE TABLE leases (
    trial INTEGER PRIMARY KEY, -- as the key of trials
    agent TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT;
  `,
  `
  -- The lists that pages are read from: the runs of a case, of one of its variants, of one of its models. A
  -- run's position in a list, counted from its oldest run, never changes, because no run is deleted.
  CREATE TABLE run_lists (
    key INTEGER PRIMARY KEY,
    organization INTEGER NOT NULL REFERENCES organizations (key),
    case_id TEXT NOT NULL,
    filter TEXT NOT NULL CHECK (filter IN ('all', 'variant', 'model')),
    value TEXT NOT NULL,
    total INTEGER NOT NULL,
    UNIQUE (organization, case_id, filter, value)
  ) STRICT;
  CREATE TABLE listed_runs (
    list INTEGER NOT NULL REFERENCES run_lists (key),
    position INTEGER NOT NULL,
    run INTEGER NOT NULL REFERENCES runs (key),
    PRIMARY KEY (list, position)
  ) STRICT, WITHOUT ROWID;

  CREATE TEMP VIEW lists_of_runs AS
    SELECT key, organization, case_id, 'all' AS filter, '' AS value FROM runs
    UNION ALL SELECT key, organization, case_id, 'variant', variant_id FROM runs
    UNION ALL SELECT key, organization, case_id, 'model', model FROM runs;
  INSERT INTO run_lists (organization, case_id, filter, value, total)
    SELECT organization, case_id, filter, value, count(*) FROM lists_of_runs
    GROUP BY organization, case_id, filter, value;
  INSERT INTO listed_runs (list, position, run)
    SELECT run_lists.key, row_number() OVER (PARTITION BY run_lists.key ORDER BY found.key) - 1, found.key
    FROM lists_of_runs AS found JOIN run_lists USING (organization, case_id, filter, value);
  DROP VIEW lists_of_runs;

  DROP TABLE run_totals;
  DROP INDEX runs_of_case;
  DROP INDEX runs_of_variant;
  DROP INDEX runs_of_model;
  `,
  `
  -- Reported trials whose evidence was audited here. A table of its own, as completed_trials is.
  CREATE TABLE audited_trials (
    key INTEGER PRIMARY KEY REFERENCES trials (key),
    level TEXT NOT NULL, -- how far the evidence holds
    audited_at INTEGER NOT NULL
  ) STRICT;
  `,
  `
  -- A reported run gets a suite's id once the evidence of a trial of it was graded again here. Such runs count
  -- for baselines if the owner says so.
  CREATE INDEX audited_runs_of_baseline ON runs (organization, case_id, suite_id, variant_id)
    WHERE local = 1 AND suite_id IS NOT NULL;
  `,
  `
  -- Batches that are still written. Without its row, a batch is complete.
  CREATE TABLE unlisted_batches (
    batch INTEGER PRIMARY KEY REFERENCES batches (key),
    since INTEGER NOT NULL
  ) STRICT;
  `,
  `
  -- Has its row only in a copy that was made as a backup: its last run, and when the copy was served first.
  CREATE TABLE copies (last_run INTEGER PRIMARY KEY, served_at INTEGER) STRICT;
  `,
];
