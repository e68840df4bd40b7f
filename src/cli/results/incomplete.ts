import { firstThrown, messageOf } from '../../base/offsite-error.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import { type ListedTrial, listAttempts, listTrials } from '../../ledger/find.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { Interrupted } from '../interruption.ts';
import { type MergedSummary, mergedSummary } from '../output/merged-summary.ts';
import { type SummaryDetail, storedSummary } from '../output/stored-batch.ts';
import type { BatchSummary, Incomplete, RunSummary, UnfinishedTrial } from '../output/summary.ts';

export interface UnfinishedWork {
  /** What was planned; undefined for a batch that was started without a plan. */
  plan: SuitePlan | undefined;
  /** The batches that were started for it. */
  batches: readonly StoredBatch[];
  /** What ended the command. */
  thrown: unknown;
}

/**
 * The results of batches so far, and the trials that have none. Undefined if no batch was started. If a suite
 * needs several batches and not all were started, the trials of the others are taken from the plan.
 */
export function incompleteSummary(
  { plan, batches, thrown }: UnfinishedWork,
  ledger: Ledger,
  detail: SummaryDetail,
): BatchSummary | MergedSummary | undefined {
  const [first, ...more] = batches.map((batch) => storedSummary(batch, ledger, detail));
  if (!first) return undefined;
  const set = batches[0] && ledger.sets.ofBatch(batches[0].key)?.id;
  const whole = more.length > 0 || set !== undefined ? mergedSummary([first, ...more], set) : first;
  const { kind, why } = endedBy(thrown);
  const left = batches.flatMap(({ key }) => listTrials(ledger.records, key)).filter(({ result }) => !result);
  const begun = Map.groupBy(left, ({ caseId, variant }) => nameOf({ case: caseId, variant }));
  const named = new Map(whole.runs.map((run) => [nameOf(run), run]));
  for (const run of plannedRuns(plan)) if (!named.has(nameOf(run))) named.set(nameOf(run), run);
  const runs = [...named.values()].map((run): RunSummary => {
    const ofRun = begun.get(nameOf(run)) ?? [];
    const planned = (plan?.trials ?? 0) - run.trials.length;
    const unfinished = Array.from({ length: Math.max(ofRun.length, planned) }, (_, index) => {
      return unfinishedTrial(run, ofRun, index, { why, ledger, isMerged: whole !== first });
    });
    return { ...run, ...(unfinished.length > 0 && { unfinished }) };
  });
  const unfinished = runs.reduce((sum, run) => sum + (run.unfinished?.length ?? 0), 0);
  return { ...whole, incomplete: { kind, why, unfinished }, runs } as BatchSummary | MergedSummary;
}

/** What ended the command: `interrupted by SIGTERM`, or what failed. */
export function endedBy(thrown: unknown): Pick<Incomplete, 'kind' | 'why'> {
  const first = firstThrown(thrown);
  return first instanceof Interrupted
    ? { kind: 'interrupted', why: `interrupted by ${first.message}` }
    : { kind: 'failed', why: messageOf(first) };
}

function nameOf({ case: id, variant }: Pick<RunSummary, 'case' | 'variant'>): string {
  return JSON.stringify([id, variant]);
}

function unfinishedTrial(
  { trials }: RunSummary,
  left: readonly ListedTrial[],
  index: number,
  { why, ledger, isMerged }: { why: string; ledger: Ledger; isMerged: boolean },
): UnfinishedTrial {
  const trial = left[index];
  // Trials of several batches are renumbered, and those of no batch have no number yet.
  const ordinal = trial && !isMerged ? trial.ordinal : trials.length + index;
  const hasBegun = trial !== undefined && listAttempts(ledger.records, trial.key).length > 0;
  return { ordinal, why: `${hasBegun ? 'has no result' : 'did not begin'}: ${why}` };
}

function plannedRuns(plan: SuitePlan | undefined): RunSummary[] {
  const { cases = [], variants = [] } = plan ?? {};
  return cases.flatMap(({ request }) =>
    variants.map(({ name, model }) => ({
      ...{ id: '', case: request.id, variant: name, model },
      ...{ passed: 0, failed: 0, void: 0, notRun: 0, passRate: undefined },
      ...{ durationMs: 0, commands: 0, tokens: 0, costUsd: 0, harnessVersion: undefined },
      trials: [],
    })),
  );
}
