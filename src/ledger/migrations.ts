/** The table of reports, which is made anew for each further state: SQLite cannot change a CHECK. */
const reportsTable = (name: string, states: string) => `
  CREATE TABLE ${name} (
    trial INTEGER PRIMARY KEY REFERENCES trials (key),
    body TEXT NOT NULL, -- sha256 of the blob with the reported trial as JSON
    state TEXT NOT NULL CHECK (state IN (${states})),
    sent INTEGER NOT NULL DEFAULT 0 CHECK (sent IN (0, 1)), -- whether the service may have it
    tries INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL,
    answer TEXT, -- what the service said last, where it was not a success
    lease INTEGER, -- the number of the lease under which the trial ran, if the service leases trials
    since INTEGER NOT NULL DEFAULT 0, -- when it got its state, in epoch milliseconds
    refused TEXT -- the version of Offsite whose report was refused
  ) STRICT;`;

/**
 * The migrations of the ledger's schema; `migrations[n]` takes version n to n + 1. Times are epoch
 * milliseconds. Never edit a released migration.
 */
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
  `
  -- A call of evals.start, written before it is made: its answer may be lost.
  CREATE TABLE starts (
    key INTEGER PRIMARY KEY,
    service TEXT NOT NULL,
    suite TEXT NOT NULL,
    file TEXT,
    plan TEXT NOT NULL, -- sha256 of the blob with the planned batch as JSON
    lock TEXT NOT NULL, -- name of the lock that its process holds
    asked_at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('asking', 'started', 'refused', 'unknown'))
  ) STRICT;

  ALTER TABLE batches ADD COLUMN start INTEGER REFERENCES starts (key);
  ALTER TABLE batches ADD COLUMN plan TEXT; -- as in starts; null where the batch cannot be resumed
  ALTER TABLE batches ADD COLUMN lock TEXT;
  ALTER TABLE batches ADD COLUMN state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'finished'));

  ALTER TABLE runs ADD COLUMN variant_index INTEGER; -- its place in the plan
  ALTER TABLE runs ADD COLUMN setup TEXT; -- sha256 of the blob with the pulled setup as JSON; null until it was pulled
  ALTER TABLE runs ADD COLUMN state TEXT NOT NULL DEFAULT 'started' CHECK (state IN ('started', 'finished'));

  ALTER TABLE attempts ADD COLUMN result TEXT; -- sha256 of the blob with what an attempt that does not count had found

  -- Every change of state, in order.
  CREATE TABLE changes (
    key INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    subject TEXT NOT NULL CHECK (subject IN ('start', 'batch', 'run', 'trial', 'attempt', 'report')),
    of INTEGER NOT NULL, -- the key of the subject; a report has its trial's
    state TEXT NOT NULL,
    detail TEXT
  ) STRICT;

  CREATE INDEX changes_of ON changes (subject, of);
  CREATE INDEX trials_of_run ON trials (run, state);

  UPDATE runs SET state = 'finished'
  WHERE NOT EXISTS (SELECT 1 FROM trials WHERE trials.run = runs.key AND trials.state <> 'finished');
  UPDATE batches SET state = 'finished'
  WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.batch = batches.key AND runs.state <> 'finished');
  `,
  `
  -- Runs that the daemon found by listing. They have no plan: their variants are looked up in the configuration.
  CREATE TABLE claims (
    run INTEGER PRIMARY KEY REFERENCES runs (key)
  ) STRICT;

  -- Trials that are not to be run although they have no result here.
  CREATE TABLE withdrawals (
    trial INTEGER PRIMARY KEY REFERENCES trials (key),
    why TEXT NOT NULL CHECK (why IN ('elsewhere', 'canceled'))
  ) STRICT;

  CREATE INDEX trials_open ON trials (key) WHERE state <> 'finished';
  CREATE INDEX starts_of_file ON starts (file);
  `,
  `
  -- Attempts that a process came to its end with: by an error that nobody expected, or without a word.
  CREATE TABLE crashes (
    attempt INTEGER PRIMARY KEY REFERENCES attempts (key),
    kind TEXT NOT NULL CHECK (kind IN ('error', 'death')),
    at INTEGER NOT NULL,
    detail TEXT -- the file that says more
  ) STRICT;
  `,
  `
  -- Where runs and trials stand is in their own tables: what was found, and what was withdrawn.
  ALTER TABLE runs ADD COLUMN origin TEXT NOT NULL DEFAULT 'planned' CHECK (origin IN ('planned', 'found'));
  ALTER TABLE runs ADD COLUMN variant_id TEXT; -- the service's, once it was pulled
  -- Why a trial is not to be run.
  ALTER TABLE trials ADD COLUMN withdrawn TEXT CHECK (withdrawn IN ('elsewhere', 'canceled'));

  UPDATE runs SET origin = 'found', variant_id = variant WHERE key IN (SELECT run FROM claims);
  UPDATE trials SET withdrawn = (SELECT why FROM withdrawals WHERE withdrawals.trial = trials.key);

  DROP TABLE claims;
  DROP TABLE withdrawals;
  `,
  `
  -- What the steps of environments printed. Results refer to the logs; a log that none refers to may be pruned.
  CREATE TABLE builds (
    step TEXT PRIMARY KEY, -- sha256 of all that goes into the step
    started_at INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    log TEXT -- sha256 of the blob; null if it printed nothing
  ) STRICT;
  `,
  `
  -- The number of the lease under which the trial ran, if the service leases trials.
  ALTER TABLE reports ADD COLUMN lease INTEGER;

  -- One row: the name by which services know the agents of this data folder.
  CREATE TABLE agent (
    id TEXT NOT NULL
  ) STRICT;
  `,
  `
  -- What trials left, kept to grade it again.
  CREATE TABLE workspaces (
    trial INTEGER PRIMARY KEY REFERENCES trials (key),
    kind TEXT NOT NULL CHECK (kind IN ('untouched', 'archive', 'image')),
    name TEXT, -- an archive's sha256, its file in workspaces/; an image's id on the engine
    byte_size INTEGER NOT NULL, -- of an archive before it was compressed
    stored_size INTEGER NOT NULL,
    kept_at INTEGER NOT NULL,
    removed_at INTEGER -- when the file or the image was removed to free disk space
  ) STRICT;

  -- Later gradings of what trials left. They change neither the result of a trial nor its report.
  CREATE TABLE gradings (
    key INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trials (key),
    graded_at INTEGER NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('passed', 'failed', 'void')),
    result TEXT NOT NULL, -- sha256 of the blob with the record as JSON
    basis TEXT NOT NULL -- sha256 of all that said how to grade
  ) STRICT;

  CREATE INDEX gradings_of_trial ON gradings (trial);
  `,
  `
  -- The task of a fleet that a trial was taken for.
  CREATE TABLE fleet_tasks (
    trial INTEGER PRIMARY KEY REFERENCES trials (key),
    token TEXT NOT NULL, -- what Temporal knows the task by, as base64
    workflow_run TEXT NOT NULL,
    accepted INTEGER NOT NULL DEFAULT 0 CHECK (accepted IN (0, 1)) -- whether Temporal took the trial's result
  ) STRICT;
  `,
  `
  -- A suite with more cases than a start request takes. Each part is planned before the first is started.
  CREATE TABLE sets (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    service TEXT NOT NULL,
    suite TEXT NOT NULL,
    file TEXT,
    planned_at INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE set_parts (
    key INTEGER PRIMARY KEY,
    of_set INTEGER NOT NULL REFERENCES sets (key),
    number INTEGER NOT NULL, -- from 1
    plan TEXT NOT NULL, -- sha256 of the blob with the planned batch as JSON
    start INTEGER UNIQUE REFERENCES starts (key), -- the last one; null until the service is asked
    UNIQUE (of_set, number)
  ) STRICT;

  CREATE INDEX batches_of_start ON batches (start);
  `,
  `
  -- The workflow that gave the task: the batch's own, or a part of it. Earlier tasks are the batch's.
  ALTER TABLE fleet_tasks ADD COLUMN workflow TEXT;
  `,
  `
  -- The lock of who works on a run that was found. Null for the daemon.
  ALTER TABLE runs ADD COLUMN lock TEXT;
  `,
  `
  -- When a person gave the set up, in epoch milliseconds: its parts without a batch are never started.
  ALTER TABLE sets ADD COLUMN abandoned_at INTEGER;
  `,
  `
  -- A superseded report is kept: the service may lose the result that took its place.
${reportsTable('reports_of_trials', "'queued', 'delivered', 'parked', 'superseded'")}

  INSERT INTO reports_of_trials (trial, body, state, sent, tries, next_at, answer, lease)
    SELECT trial, body, state, 1, tries, next_at, answer, lease FROM reports;
  DROP TABLE reports;
  ALTER TABLE reports_of_trials RENAME TO reports;
  CREATE INDEX reports_due ON reports (state, next_at);
  CREATE INDEX reports_since ON reports (state, since);
  `,
  `
  -- What trials asked, how they were graded, and what worked on them. Trials of one case and variant share it.
  CREATE TABLE fingerprints (
    key INTEGER PRIMARY KEY,
    parts TEXT NOT NULL UNIQUE -- JSON: the value of each part by its name
  ) STRICT;

  ALTER TABLE trials ADD COLUMN fingerprint INTEGER REFERENCES fingerprints (key);

  -- How a batch differs from a run of its whole suite with live models. Null where an older Offsite began it.
  ALTER TABLE batches ADD COLUMN answers TEXT CHECK (answers IN ('live', 'replayed', 'forked'));
  ALTER TABLE batches ADD COLUMN suite_cases INTEGER; -- how many cases the suite has, if some were left out
  `,
  `
  -- What lists show of a finished trial, as JSON, and its parts that are added up. Null until a list first needs it
  -- where an older Offsite stored the result.
  ALTER TABLE trials ADD COLUMN duration_ms INTEGER;
  ALTER TABLE trials ADD COLUMN tokens INTEGER; -- of the agent's models; null if not measured
  ALTER TABLE trials ADD COLUMN cost_usd REAL; -- the same
  ALTER TABLE trials ADD COLUMN record_bytes INTEGER; -- of the blob with the result
  ALTER TABLE trials ADD COLUMN listing TEXT;
  `,
  `
  -- What the last audit of a trial found at each level, as JSON. Null if it was never audited.
  ALTER TABLE trials ADD COLUMN audit TEXT;
  `,
  `
  -- A report that the service has answered is only sent. It is delivered once the service's record shows it.
${reportsTable('reports_with_sent', "'queued', 'sent', 'delivered', 'parked', 'superseded'")}

  INSERT INTO reports_with_sent (trial, body, state, sent, tries, next_at, answer, lease, since, refused)
    SELECT trial, body, state, sent, tries, next_at, answer, lease, since, refused FROM reports;
  DROP TABLE reports;
  ALTER TABLE reports_with_sent RENAME TO reports;
  CREATE INDEX reports_due ON reports (state, next_at);
  CREATE INDEX reports_since ON reports (state, since);
  `,
  `
  -- The commit of the repository that the suite is in, and whether the folder of the suite differed from it. Null
  -- outside a repository, and where an older Offsite began the batch.
  ALTER TABLE batches ADD COLUMN commit_id TEXT;
  ALTER TABLE batches ADD COLUMN commit_dirty INTEGER CHECK (commit_dirty IN (0, 1));
  `,
  `
  -- When a finished trial ran, in milliseconds of a clock that nobody can set. Null where that is not known.
  ALTER TABLE trials ADD COLUMN steady_clock TEXT; -- the clock: of one boot of a machine, or of one process
  ALTER TABLE trials ADD COLUMN steady_from INTEGER;
  ALTER TABLE trials ADD COLUMN steady_to INTEGER;
  `,
  `
  -- Sums over the trials of ended batches, which lists store when they have added them up. Any change of what goes into
  -- a batch's sums removes them.
  CREATE TABLE batch_sums (
    batch INTEGER PRIMARY KEY REFERENCES batches (key) ON DELETE CASCADE,
    passed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    void INTEGER NOT NULL,
    unfinished INTEGER NOT NULL,
    canceled INTEGER NOT NULL,
    elsewhere INTEGER NOT NULL,
    found INTEGER NOT NULL, -- runs that were found
    from_service INTEGER NOT NULL,
    cases INTEGER NOT NULL,
    unlisted INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    tokens INTEGER, -- null unless it is known for each trial
    cost_usd REAL, -- the same
    last_at INTEGER,
    is_steady INTEGER NOT NULL,
    steady_ms INTEGER
  ) STRICT;

  CREATE TRIGGER sums_after_new_run AFTER INSERT ON runs BEGIN
    DELETE FROM batch_sums WHERE batch = new.batch;
  END;
  CREATE TRIGGER sums_after_changed_run AFTER UPDATE OF batch, case_id, origin ON runs BEGIN
    DELETE FROM batch_sums WHERE batch IN (old.batch, new.batch);
  END;
  CREATE TRIGGER sums_after_removed_run AFTER DELETE ON runs BEGIN
    DELETE FROM batch_sums WHERE batch = old.batch;
  END;
  CREATE TRIGGER sums_after_new_trial AFTER INSERT ON trials BEGIN
    DELETE FROM batch_sums WHERE batch = (SELECT batch FROM runs WHERE key = new.run);
  END;
  CREATE TRIGGER sums_after_changed_trial AFTER UPDATE OF run, state, verdict, withdrawn, finished_at, duration_ms,
    tokens, cost_usd, steady_clock, steady_from, steady_to ON trials
  BEGIN
    DELETE FROM batch_sums WHERE batch IN (SELECT batch FROM runs WHERE key IN (old.run, new.run));
  END;
  CREATE TRIGGER sums_after_removed_trial AFTER DELETE ON trials BEGIN
    DELETE FROM batch_sums WHERE batch = (SELECT batch FROM runs WHERE key = old.run);
  END;
  CREATE TRIGGER sums_after_new_report AFTER INSERT ON reports BEGIN
    DELETE FROM batch_sums
    WHERE batch = (SELECT batch FROM trials JOIN runs ON runs.key = trials.run WHERE trials.key = new.trial);
  END;
  CREATE TRIGGER sums_after_removed_report AFTER DELETE ON reports BEGIN
    DELETE FROM batch_sums
    WHERE batch = (SELECT batch FROM trials JOIN runs ON runs.key = trials.run WHERE trials.key = old.trial);
  END;

  CREATE INDEX trials_audited ON trials (run) WHERE audit IS NOT NULL;
  `,
  `
  -- Results that do not count, and those that the service does not show.
  DELETE FROM batch_sums;
  ALTER TABLE batch_sums ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE batch_sums ADD COLUMN unreported INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE batch_sums ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- Trials without a verdict are looked for before each trial of their variant.
  CREATE INDEX trials_void ON trials (run) WHERE verdict = 'void';
  `,
];
