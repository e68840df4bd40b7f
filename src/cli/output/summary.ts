import { printedText } from '../../bounds/anyone.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import type { ListedAttempt } from '../../record/attempt.ts';
import { failedOutputOf, failuresOf } from '../../record/failures.ts';
import type { TrialListing } from '../../record/listing.ts';
import type { SuiteCommit } from '../../record/suite-commit.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import type { SystemChanges } from '../../trial/collect/system-changes.ts';

/** The results of a batch, run by run. Tables need only the numbers of its trials. */
export interface BatchSummary<Trial extends TrialNumbers = TrialSummary> {
  batchId: string;
  service: string;
  /** Of the repository that the suite is in; absent if it is in none. */
  commit?: SuiteCommit | undefined;
  /** Passed of scored trials, 0 to 1; absent if no trial was scored. */
  passRate: number | undefined;
  passed: number;
  failed: number;
  void: number;
  /** Trials whose results the service does not show yet. */
  unreported: number;
  /** Milliseconds: the sum over the trials. */
  durationMs: number;
  /** When its first trial began and its last one ended, in epoch milliseconds; absent before the first. */
  startedAt?: number | undefined;
  finishedAt?: number | undefined;
  /** Milliseconds between these: what a person waited. */
  elapsedMs?: number | undefined;
  /** Whether that is only known by clocks that can be set: the trials have no other clock in common. */
  elapsedIsAbout?: true | undefined;
  steady?: TrialListing['steady'];
  /** Cost of the agent's model in all trials; absent unless it is known for each trial. */
  tokens: number | undefined;
  costUsd: number | undefined;
  /** Set if trials have no result, because the command was interrupted or failed. */
  incomplete?: Incomplete | undefined;
  runs: RunSummary<Trial>[];
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

export interface RunSummary<Trial extends TrialNumbers = TrialSummary> {
  id: string;
  case: string;
  variant: string;
  /** Undefined for a run that was found, before its first trial is finished. */
  model: string | undefined;
  passed: number;
  failed: number;
  void: number;
  /** Void trials that did not run, because the variant's harness did not work. */
  notRun: number;
  passRate: number | undefined;
  /** Milliseconds: the sum over the run's trials. */
  durationMs: number;
  /** Commands that the harness ran, summed over the run's trials. */
  commands: number;
  /** Of the agent's model; absent unless it is known for each trial. */
  tokens: number | undefined;
  costUsd: number | undefined;
  /** As the harness reports it; absent if it reports none. */
  harnessVersion: string | undefined;
  trials: Trial[];
  /** Its trials without a result, if the batch is incomplete. */
  unfinished?: UnfinishedTrial[] | undefined;
}

export interface TrialNumbers {
  ordinal: number;
  verdict: string;
  reported: boolean;
  durationMs: number;
  commands: number;
  tokens: number | undefined;
  costUsd: number | undefined;
  /** Where the trial was graded: in a fresh sandbox, or in the same one as the harness. */
  verifiedIn?: 'fresh' | 'same';
  validatedIn?: 'fresh' | 'same';
  systemChanges?: { unexpected: { count: number } };
  /** Images that the configuration replaces by others; absent if it replaces none. */
  mappedImages?: TrialRecord['mappedImages'];
  /** Set if recorded answers took the place of models: it is not a live result. */
  replay?: TrialRecord['replay'];
  /** Set if only the service had the result: its duration and its commands are not known, and count as 0. */
  fromService?: true;
}

export type TrialSummary = TrialNumbers & TrialTexts;

/** What only the record of a trial says. */
interface TrialTexts extends Partial<TrialDetails> {
  /** The checks that failed, one line each. */
  failures: string[];
  failuresCount: number;
  failuresTruncated: boolean;
  /** The last lines that the failed checks printed; absent if they printed none, or nothing failed. */
  failedOutput?: string | undefined;
  cause?: { kind: string; phase: string; message: string } | undefined;
  filesChanged: string[];
  filesChangedCount: number;
  filesChangedTruncated: boolean;
  /** What changed outside the workspace where verify ran. */
  systemChanges?: SystemChanges;
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
export interface SummarizedBatch<Texts = TrialTexts> {
  id: string;
  commit?: SuiteCommit | undefined;
  runs: Pick<RunSummary, 'id' | 'case' | 'variant' | 'model'>[];
  /** The finished trials. They are read one by one: together they may not fit into memory. */
  trials: Iterable<SummarizedTrial<Texts>>;
}

interface SummarizedTrial<Texts> {
  runId: string;
  ordinal: number;
  verdict: TrialRecord['verdict'];
  listing: TrialListing;
  texts: Texts;
}

/** @param pending the reports whose results the service does not show */
export function summaryOf<Texts extends object>(
  batch: SummarizedBatch<Texts>,
  service: string,
  pending: readonly StoredTrial[],
): BatchSummary<TrialNumbers & Texts> {
  const unreported = new Set(
    pending.filter(({ batchId }) => batchId === batch.id).map(({ runId, ordinal }) => `${runId} ${ordinal}`),
  );
  const ofRuns = new Map<
    string,
    { trials: (TrialNumbers & Texts)[]; harnessVersion?: string; notRun: number }
  >();
  const times: Times[] = [];
  for (const { runId, ordinal, verdict, listing, texts } of batch.trials) {
    const run = ofRuns.get(runId) ?? { trials: [], notRun: 0 };
    ofRuns.set(runId, run);
    const reported = !unreported.has(`${runId} ${ordinal}`);
    run.trials.push({ ordinal, verdict, reported, ...numbersOf(listing), ...texts });
    run.notRun += listing.notRun && listing.cause?.kind === 'harness' ? 1 : 0;
    if (!listing.fromService) times.push(listing);
    if (listing.harnessVersion !== undefined) run.harnessVersion ??= listing.harnessVersion;
  }
  const runs = batch.runs.map((run): RunSummary<TrialNumbers & Texts> => {
    const { trials, harnessVersion, notRun } = ofRuns.get(run.id) ?? { trials: [], notRun: 0 };
    return { ...run, ...ofRun(trials), notRun, harnessVersion };
  });
  const trials = runs.flatMap((run) => run.trials);
  return {
    batchId: batch.id,
    service,
    ...(batch.commit && { commit: batch.commit }),
    ...sumsOf(trials),
    unreported: trials.filter(({ reported }) => !reported).length,
    ...elapsedOf(times),
    runs,
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
  return {
    durationMs: listing.finishedAt - listing.startedAt,
    commands: listing.commands ?? 0,
    tokens: listing.totalTokens,
    costUsd: listing.costUsd,
    ...(verifiedIn && { verifiedIn }),
    ...(validatedIn && { validatedIn }),
    ...(systemChanges && { systemChanges }),
    ...(mappedImages && { mappedImages }),
    ...(replay && { replay }),
    ...(fromService && { fromService }),
  };
}

export function textsOf(result: TrialRecord): TrialTexts {
  const { cause } = result;
  const failures = failuresOf(result);
  const filesChanged = (result.filesChanged ?? []).slice(0, printedText.count.listed);
  const filesChangedCount = result.filesChangedCount ?? result.filesChanged?.length ?? 0;
  const failedOutput = failedOutputOf(result);
  return {
    failures: failures.slice(0, printedText.count.listed),
    failuresCount: failures.length,
    failuresTruncated: failures.length > printedText.count.listed,
    ...(failedOutput !== '' && { failedOutput }),
    ...(cause && { cause: { kind: cause.kind, phase: cause.phase, message: cause.message } }),
    filesChanged,
    filesChangedCount,
    filesChangedTruncated: filesChangedCount > filesChanged.length,
    ...(result.systemChanges && { systemChanges: result.systemChanges }),
    ...(result.sandboxLacks && { sandboxLacks: result.sandboxLacks }),
  };
}

/** What a batch and each of its runs sum up. */
function sumsOf(trials: readonly TrialNumbers[]) {
  const count = (verdict: string) => trials.filter((trial) => trial.verdict === verdict).length;
  const [passed, failed] = [count('passed'), count('failed')];
  return {
    passed,
    failed,
    void: count('void'),
    passRate: passed + failed === 0 ? undefined : passed / (passed + failed),
    durationMs: trials.reduce((sum, { durationMs }) => sum + durationMs, 0),
    tokens: sumOf(trials.map(({ tokens }) => tokens)),
    costUsd: sumOf(trials.map(({ costUsd }) => costUsd)),
  };
}

function ofRun<Trial extends TrialNumbers>(trials: Trial[]) {
  return { ...sumsOf(trials), commands: trials.reduce((sum, { commands }) => sum + commands, 0), trials };
}

/** The sums of each variant over its cases; none if there is only one variant or only one case. */
export function sumsOfVariants<Trial extends TrialNumbers>({ runs }: Pick<BatchSummary<Trial>, 'runs'>) {
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

/** The batches of one command, with the runs of the same case and variant as one. */
export interface MergedSummary<Trial extends TrialNumbers = TrialSummary> extends BatchSummary<Trial> {
  /** All batches; `batchId` is the first. */
  batchIds: string[];
  /** The id of the set that the batches are; absent for batches of `--trials auto`. */
  set?: string;
  runs: MergedRun<Trial>[];
}

interface MergedRun<Trial extends TrialNumbers> extends RunSummary<Trial> {
  trials: MergedTrial<Trial>[];
}

/** Trials are renumbered, through all batches. */
type MergedTrial<Trial> = Trial & {
  /** The trial at the service and in the ledger. */
  recorded: { batchId: string; runId: string; ordinal: number };
};

/** Merges the summaries of batches of one suite. There must be at least one. */
export function mergedSummary<Trial extends TrialNumbers>(
  summaries: readonly [BatchSummary<Trial>, ...BatchSummary<Trial>[]],
  set?: string,
): MergedSummary<Trial> {
  const [first] = summaries;
  const runs = summaries.flatMap(({ batchId, runs }) =>
    runs.map((run): MergedRun<Trial> => {
      const trials = run.trials.map((trial) => {
        const { ordinal } = trial;
        return { ...trial, recorded: { batchId, runId: run.id, ordinal } };
      });
      return { ...run, trials };
    }),
  );
  const alike = Map.groupBy(runs, (run) => JSON.stringify([run.case, run.variant]));
  return {
    ...first,
    ...sumsOf(runs.flatMap(({ trials }) => trials)),
    ...elapsedOf(summaries),
    unreported: summaries.reduce((sum, { unreported }) => sum + unreported, 0),
    batchIds: summaries.map(({ batchId }) => batchId),
    ...(set !== undefined && { set }),
    runs: [...alike.values()].map(([run, ...more]) => mergedRun(run as MergedRun<Trial>, more)),
  };
}

function mergedRun<Trial extends TrialNumbers>(
  first: MergedRun<Trial>,
  more: readonly MergedRun<Trial>[],
): MergedRun<Trial> {
  const all = [first, ...more];
  const trials = all.flatMap((run) => run.trials).map((trial, ordinal) => ({ ...trial, ordinal }));
  return {
    ...first,
    ...ofRun(trials),
    notRun: all.reduce((sum, { notRun }) => sum + notRun, 0),
  };
}
