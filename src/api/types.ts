// The types of the package. They name no others, so that a program needs no other package for them.

/** Options of `runSuite`. Those that are missing come from the configuration, as for `offsite run`. */
export interface RunSuiteOptions extends PlaceOptions {
  /** Trials at a time. Default: from the configuration, else from cores and memory. */
  concurrency?: number | undefined;
  /** Trials of each case on each variant. Default: the suite's. */
  trials?: number | undefined;
  /** Only these variants of the suite. */
  variants?: readonly string[] | undefined;
  /** Only cases whose ids match one of these globs. */
  include?: readonly string[] | undefined;
  /** No cases whose ids match one of these globs. */
  exclude?: readonly string[] | undefined;
  /** At most so many cases. */
  limit?: number | undefined;
  /** Stops the trials and removes their sandboxes; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Called for what happens, in order. If it throws, the run stops and rejects with that. */
  onEvent?: ((event: RunEvent) => void) | undefined;
}

/** Where the configuration and the results are. */
export interface PlaceOptions {
  /**
   * The path of `offsite.yaml`. Default: beside the suite or above it in its repository, here, or in
   * `~/.config/offsite`.
   */
  config?: string | undefined;
  /** The folder for results. Default: `OFFSITE_HOME`, the configuration, or `~/.local/share/offsite`. */
  dataFolder?: string | undefined;
  /** In place of `process.env`: keys of models, `OFFSITE_URL`, `DOCKER_HOST`. */
  env?: Record<string, string | undefined> | undefined;
}

export type RunEvent =
  /** The service has started a batch. */
  | { kind: 'started'; batchId: string; trials: number }
  | {
      kind: 'finished';
      case: string;
      variant: string;
      ordinal: number;
      verdict: Verdict;
      why: string;
      durationMs: number;
    }
  /** Something for a person, in words. */
  | { kind: 'note'; message: string };

/** `void`: no verdict, because something other than the agent was at fault. */
export type Verdict = 'passed' | 'failed' | 'void';

/** The results of a batch, or of all batches of a suite with very many cases. */
export interface Batch {
  /** Of the batch or the set; `offsite show` takes it. */
  id: string;
  batchIds: string[];
  suite: string;
  /** The address of the service, or `embedded`. */
  service: string;
  /** Epoch milliseconds. */
  startedAt: number;
  passed: number;
  failed: number;
  void: number;
  /** Trials without a result. */
  unfinished: number;
  /** Passed of passed and failed, 0 to 1. Undefined if there are none. */
  passRate: number | undefined;
  /** Of the agent's models in all trials. Undefined unless it is known for each. */
  tokens: number | undefined;
  costUsd: number | undefined;
  /** The trials with a result, by case, variant and ordinal. */
  trials: Trial[];
}

export interface Trial {
  /** By which `offsite show` finds it: `BATCH:case/variant#0`. */
  name: string;
  case: string;
  variant: string;
  /** From 0. */
  ordinal: number;
  verdict: Verdict;
  /** Why it did not pass, in one line. Empty if it passed. */
  why: string;
  /** Epoch milliseconds. Undefined if its record cannot be read, and so are the numbers below. */
  startedAt: number | undefined;
  durationMs: number | undefined;
  /** Of the agent's model. Undefined if it was not measured. */
  tokens: number | undefined;
  costUsd: number | undefined;
  /** The path of the JSON file with its record. */
  recordFile: string;
  /** Reads all that it found. Its error has the code `BLOB_MISSING`, `BLOB_DAMAGED` or `RECORD_NEWER`. */
  record(): TrialRecord;
  /** The files that it left on purpose. Reads the record, and throws as that does. */
  artifacts(): Artifact[];
}

export interface Artifact {
  /** In the workspace. */
  path: string;
  /** Bytes. */
  byteSize: number;
  sha256: string;
  /** The path of its content on this machine. */
  file: string;
}

/** As `schemas/trial-record.schema.json` of this package describes it. */
export interface TrialRecord {
  readonly version: number;
  readonly verdict: Verdict;
  readonly [field: string]: unknown;
}

/** The variables in which CI systems give the address of the job or build that runs. */
const addresses = ['CI_JOB_URL', 'BUILDKITE_BUILD_URL', 'CIRCLE_BUILD_URL', 'BUILD_URL'];

/**
 * The address of the CI run that this process is part of, for people who see its batch at the service.
 * Undefined outside CI, and if the address is invalid or contains a user or a password.
 */
export function ciRun(env: NodeJS.ProcessEnv): string | undefined {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository, GITHUB_RUN_ID: id } = env;
  const github = server && repository && id ? `${server}/${repository}/actions/runs/${id}` : undefined;
  const address = github ?? addresses.map((name) => env[name]).find((value) => value);
  const parsed = address === undefined ? null : URL.parse(address);
  if (!parsed || !['http:', 'https:'].includes(parsed.protocol) || parsed.username || parsed.password) {
    return undefined;
  }
  return address;
}
