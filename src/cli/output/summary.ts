import { printedText } from '../../bounds/anyone.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import type { ListedAttempt } from '../../record/attempt.ts';
import type { Cause } from '../../record/cause.ts';
import { failedOutputOf, failuresOf } from '../../record/failures.ts';
import type { TrialListing } from '../../record/listing.ts';
import type { SuiteCommit } from '../../record/suite-commit.ts';
import type { TrialRecord } from '../../record/trial-record.ts';

/** What trials sum up to. */
export interface Sums {
  passed: number;
  failed: number;
  void: number;
  /** Passed of scored trials, 0 to 1; absent if no trial was scored. */
  passRate: number | undefined;
  /** Milliseconds: the sum over the trials. */
  durationMs: number;
  /** Of the agent's model; absent unless it is known for each trial. */
  tokens: number | undefined;
  costUsd: number | undefined;
  /** Of judges and simulated users. */
  otherCostUsd: number | undefined;
}

/**
 * The results of a batch, run by run; or those of the batches of one command as one. It is what the terminal,
 * `--json`, the step's summary, JUnit and CTRF print.
 */
export interface BatchSummary extends Sums {
  /** Of several batches, the first. */
  batchId: string;
  /** All batches; absent for one. */
  batchIds?: string[];
  /** The id of the set that the batches are; absent for batches of `--trials auto`. */
  set?: string | undefined;
  service: string;
  /** Of the repository that the suite is in; absent if it is in none. */
  commit?: SuiteCommit | undefined;
  /** Trials whose results the service does not show yet. */
  unreported: number;
  /** When its first trial began and its last one ended, in epoch milliseconds; absent before the first. */
  startedAt?: number | undefined;
  finishedAt?: number | undefined;
  /** Milliseconds between these: what a person waited. */
  elapsedMs?: number | undefined;
  /** Whether that is only known by clocks that can be set: the trials have no other clock in common. */
  elapsedIsAbout?: true | undefined;
  steady?: TrialListing['steady'];
  /** Set if trials have no result, because the command was interrupted or failed. */
  incomplete?: Incomplete | undefined;
  runs: RunSummary[];
}

export interface Incomplete {
  kind: 'interrupted' | 'failed';
  /** What ended the command. */
  why: string;
  /** Trials without a result. */
  unfinished: number;
}

/** A trial without a result. */
export interface UnfinishedTrial {
  ordinal: number;
  why: string;
}

export interface RunSummary extends Sums {
  id: string;
  case: string;
  variant: string;
  /** Undefined for a run that was found, before its first trial is finished. */
  model: string | undefined;
  /** Void trials that did not run, because the variant's harness did not work. */
  notRun: number;
  /** Commands that the harness ran, summed over the run's trials. */
  commands: number;
  /** As the harness reports it; absent if it reports none. */
  harnessVersion: string | undefined;
  trials: TrialSummary[];
  /** Its trials without a result, if the batch is incomplete. */
  unfinished?: UnfinishedTrial[] | undefined;
}

/** A trial. Of several batches, trials are renumbered through all of them. */
export type TrialSummary = TrialNumbers &
  Partial<TrialTexts & TrialDetails> & {
    /** Of several batches: the trial at the service and in the ledger. */
    recorded?: { batchId: string; runId: string; ordinal: number };
  };

interface TrialNumbers {
  ordinal: number;
  verdict: string;
  reported: boolean;
  durationMs: number;
  commands: number;
  tokens: number | undefined;
  costUsd: number | undefined;
  /** Of judges and simulated users. */
  otherCostUsd: number | undefined;
  /** Where the trial was graded: in a fresh sandbox, or in the same one as the harness. */
  verifiedIn?: 'fresh' | 'same';
  validatedIn?: 'fresh' | 'same';
  /** What changed outside the workspace where verify ran; `--json` has all of it. */
  systemChanges?: { unexpected: { count: number } } | undefined;
  /** Images that the configuration replaces by others; absent if it replaces none. */
  mappedImages?: TrialRecord['mappedImages'];
  /** Set if recorded answers took the place of models: it is not a live result. */
  replay?: TrialRecord['replay'];
  /** Set if only the service had the result: its duration and its commands are not known, and count as 0. */
  fromService?: true | undefined;
}

/** What only the record of a trial says. */
interface TrialTexts {
  /** The checks that failed, one line each. */
  failures: string[];
  failuresCount: number;
  failuresTruncated: boolean;
  /** The last lines that the failed checks printed; absent if they printed none, or nothing failed. */
  failedOutput?: string | undefined;
  cause?: Pick<Cause, 'kind' | 'phase' | 'message'> | undefined;
  filesChanged: string[];
  filesChangedCount: number;
  filesChangedTruncated: boolean;
  /** Protections that its sandboxes lacked; absent if they lacked none. */
  sandboxLacks?: string[];
}

/** A blob of the data folder. */
export interface StoredBlob {
  sha256: string;
  /** On this machine. */
  path: string;
}

/** What the JSON document of a batch says about a trial in addition to its numbers. */
export interface TrialDetails {
  verifySteps: {
    command: string;
    exitCode: number;
    durationMs?: number | undefined;
    /** The beginning, if it is long. The record has all that was kept. */
    output: string;
    outputTruncated: boolean;
  }[];
  artifacts: ShownArtifact[];
  attempts: ShownAttempt[];
  /** The whole record. */
  record: StoredBlob;
}

export interface ShownArtifact {
  /** In the workspace. */
  path: string;
  byteSize: number;
  sha256: string;
  /** The path of the blob with the content. */
  blob: string;
}

/** An attempt. If it does not count, `record` has what it found. */
export type ShownAttempt = Omit<ListedAttempt, 'result'> & { record?: StoredBlob };

/** What a batch has found so far. */
export interface SummarizedBatch {
  id: string;
  commit?: SuiteCommit | undefined;
  runs: Pick<RunSummary, 'id' | 'case' | 'variant' | 'model'>[];
  /** The finished trials. They are read one by one: together they may not fit into memory. */
  trials: Iterable<{
    runId: string;
    ordinal: number;
    verdict: TrialRecord['verdict'];
    listing: TrialListing;
    texts: Partial<TrialTexts & TrialDetails>;
  }>;
}

/** @param pending the reports whose results the service does not show */
export function summaryOf(
  batch: SummarizedBatch,
  service: string,
  pending: readonly StoredTrial[],
): BatchSummary {
  const own = pending.filter(({ batchId }) => batchId === batch.id);
  const unreported = new Set(own.map(({ runId, ordinal }) => `${runId} ${ordinal}`));
  const runs = batch.runs.map(emptyRun);
  const byId = new Map(runs.map((run) => [run.id, run]));
  const times: Times[] = [];
  for (const { runId, ordinal, verdict, listing, texts } of batch.trials) {
    const run = byId.get(runId);
    if (!run) continue;
    const reported = !unreported.has(`${runId} ${ordinal}`);
    run.trials.push({ ordinal, verdict, reported, ...numbersOf(listing), ...texts });
    run.notRun += listing.notRun && listing.cause?.kind === 'harness' ? 1 : 0;
    run.harnessVersion ??= listing.harnessVersion;
    if (!listing.fromService) times.push(listing);
  }
  const trials = runs.flatMap((run) => run.trials);
  return {
    batchId: batch.id,
    service,
    commit: batch.commit,
    ...sumsOf(trials),
    unreported: trials.filter(({ reported }) => !reported).length,
    ...elapsedOf(times),
    runs: runs.map((run) => ({ ...run, ...ofRun(run.trials) })),
  };
}

type Times = Pick<BatchSummary, 'startedAt' | 'finishedAt' | 'steady'>;

/** From the first start to the last end, by a clock that nobody can set if all have the same one. */
function elapsedOf(parts: readonly Times[]): Times & Pick<BatchSummary, 'elapsedMs' | 'elapsedIsAbout'> {
  const starts = parts.flatMap(({ startedAt }) => startedAt ?? []);
  const ends = parts.flatMap(({ finishedAt }) => finishedAt ?? []);
  if (starts.length === 0 || ends.length === 0) return {};
  // A batch may have more trials than a call takes arguments.
  const startedAt = starts.reduce((first, start) => Math.min(first, start));
  const finishedAt = ends.reduce((last, end) => Math.max(last, end));
  const ran = parts.filter((part) => part.finishedAt !== undefined);
  const steady = ran.reduce<TrialListing['steady']>(
    (all, one) => all && spanOf(all, one.steady),
    ran[0]?.steady,
  );
  if (steady) return { startedAt, finishedAt, elapsedMs: steady.finishedAt - steady.startedAt, steady };
  return { startedAt, finishedAt, elapsedMs: Math.max(0, finishedAt - startedAt), elapsedIsAbout: true };
}

/** Undefined if they are of two clocks. */
function spanOf(
  one: NonNullable<TrialListing['steady']>,
  other: TrialListing['steady'],
): TrialListing['steady'] {
  if (one.of !== other?.of) return undefined;
  const startedAt = Math.min(one.startedAt, other.startedAt);
  return { of: one.of, startedAt, finishedAt: Math.max(one.finishedAt, other.finishedAt) };
}

function numbersOf(listing: TrialListing): Omit<TrialNumbers, 'ordinal' | 'verdict' | 'reported'> {
  const { verifiedIn, validatedIn, systemChanges, mappedImages, replay, fromService } = listing;
  const { startedAt, finishedAt, commands = 0, totalTokens: tokens, costUsd, otherCostUsd } = listing;
  const numbers = { durationMs: finishedAt - startedAt, commands, tokens, costUsd, otherCostUsd };
  return { ...numbers, verifiedIn, validatedIn, systemChanges, mappedImages, replay, fromService };
}

export function textsOf(result: TrialRecord): TrialTexts {
  const { cause, systemChanges, sandboxLacks, filesChanged: paths = [] } = result;
  const { filesChangedCount = paths.length } = result;
  const listed = printedText.count.listed;
  const failures = failuresOf(result);
  const filesChanged = paths.slice(0, listed);
  return {
    failures: failures.slice(0, listed),
    failuresCount: failures.length,
    failuresTruncated: failures.length > listed,
    failedOutput: failedOutputOf(result) || undefined,
    cause: cause && { kind: cause.kind, phase: cause.phase, message: cause.message },
    filesChanged,
    filesChangedCount,
    filesChangedTruncated: filesChangedCount > filesChanged.length,
    ...(systemChanges && { systemChanges }),
    sandboxLacks,
  };
}

/** How many trials have each verdict, and the pass rate. */
export function verdictsOf(trials: readonly { verdict: string }[]) {
  const count = (verdict: string) => trials.filter((trial) => trial.verdict === verdict).length;
  const [passed, failed] = [count('passed'), count('failed')];
  const passRate = passed + failed === 0 ? undefined : passed / (passed + failed);
  return { passed, failed, void: count('void'), passRate };
}

/** What a batch and each of its runs sum up. */
function sumsOf(trials: readonly TrialSummary[]): Sums {
  return {
    ...verdictsOf(trials),
    durationMs: trials.reduce((sum, { durationMs }) => sum + durationMs, 0),
    tokens: sumOf(trials.map(({ tokens }) => tokens)),
    costUsd: sumOf(trials.map(({ costUsd }) => costUsd)),
    otherCostUsd: sumOf(trials.map(({ otherCostUsd }) => otherCostUsd)),
  };
}

/** A run without a trial. */
export function emptyRun(run: Pick<RunSummary, 'id' | 'case' | 'variant' | 'model'>): RunSummary {
  return { ...run, ...ofRun([]), notRun: 0, harnessVersion: undefined };
}

function ofRun(trials: TrialSummary[]) {
  return { ...sumsOf(trials), commands: trials.reduce((sum, { commands }) => sum + commands, 0), trials };
}

/** The sums of each variant over its cases; none if there is only one variant or only one case. */
export function sumsOfVariants({ runs }: Pick<BatchSummary, 'runs'>) {
  const variants = Map.groupBy(runs, ({ variant }) => variant);
  if (variants.size < 2 || variants.size === runs.length) return [];
  return [...variants].map(([variant, own]) => {
    const versions = new Set(own.map(({ harnessVersion }) => harnessVersion));
    return {
      variant,
      ...ofRun(own.flatMap(({ trials }) => trials)),
      unfinished: own.flatMap(({ unfinished = [] }) => unfinished),
      harnessVersion: versions.size === 1 ? own[0]?.harnessVersion : undefined,
    };
  });
}

/** The sum; undefined if a part is undefined. */
function sumOf(parts: readonly (number | undefined)[]): number | undefined {
  return parts.includes(undefined) ? undefined : parts.reduce((sum = 0, part = 0) => sum + part, 0);
}

/**
 * Merges the summaries of batches of one suite, with the runs of the same case and variant as one. There must
 * be at least one.
 */
export function mergedSummary(
  summaries: readonly [BatchSummary, ...BatchSummary[]],
  set?: string,
): BatchSummary {
  const runs = summaries.flatMap(({ batchId, runs }) =>
    runs.map((run): RunSummary => {
      const recorded = (ordinal: number) => ({ batchId, runId: run.id, ordinal });
      return { ...run, trials: run.trials.map((one) => ({ ...one, recorded: recorded(one.ordinal) })) };
    }),
  );
  const alike = Map.groupBy(runs, (run) => JSON.stringify([run.case, run.variant]));
  return {
    ...summaries[0],
    ...sumsOf(runs.flatMap(({ trials }) => trials)),
    ...elapsedOf(summaries),
    unreported: summaries.reduce((sum, { unreported }) => sum + unreported, 0),
    batchIds: summaries.map(({ batchId }) => batchId),
    set,
    runs: [...alike.values()].map((all) => ({
      ...(all[0] as RunSummary),
      ...ofRun(all.flatMap(({ trials }) => trials).map((trial, ordinal) => ({ ...trial, ordinal }))),
      notRun: all.reduce((sum, { notRun }) => sum + notRun, 0),
    })),
  };
}
