import { limits } from '../contract/definition.ts';
import { listTrials } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { type FurtherTrials, furtherTrials } from '../stats/further-trials.ts';
import type { CaseVerdicts } from '../stats/pass-rate.ts';
import type { SuitePlan } from '../suite/plan.ts';
import type { OpenBatch } from './batch-run.ts';
import { type BatchEvent, type BatchParts, runBatch } from './run-batch.ts';
import { withPrompt } from './start-batch.ts';

export interface AutoTrials {
  /** The wanted half width of the 95 % interval of each variant's pass rate, from 0 to 1. */
  precision: number;
  /** The largest number of trials of a case on a variant. */
  maxTrials: number;
}

/** How precisely the pass rate of a variant is known. */
export interface KnownRate extends FurtherTrials {
  variant: string;
}

export interface FinishedBatches {
  /** In the order in which they ran. */
  batches: OpenBatch[];
  /** The id of the set, if the batches are the parts of one. */
  set?: string;
  /** One for each variant of the plan. */
  rates: KnownRate[];
}

/**
 * Runs a suite, and then further batches, until the pass rate of each variant is known with a wanted
 * precision: see {@link furtherTrials}. A batch's trials are fixed, so further trials are batches of their
 * own, with the variants and cases that need them. Rejects as {@link runBatch} does. The earlier batches are
 * finished then, and a resume of the last one starts no further batches.
 */
export async function runUntilPrecise(
  plan: SuitePlan,
  wanted: AutoTrials,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<FinishedBatches> {
  // All batches have the prompt of the first, even if somebody promotes another one meanwhile.
  const fixed = await withPrompt(plan, parts.client, signal);
  // Noise shows from the second trial on.
  const first = Math.min(Math.max(2, plan.trials), wanted.maxTrials);
  const batches = [await runBatch({ ...fixed, trials: first }, parts, signal, observe)];
  for (;;) {
    const rates = plan.variants.map(({ name }) => knownRate(name, batches, wanted, parts.ledger));
    const further = furtherPlans(fixed, rates);
    if (further.length === 0) return { batches, rates };
    observe({ kind: 'note', message: furtherTrialsText(further) });
    for (const next of further) batches.push(await runBatch(next, parts, signal, observe));
  }
}

function knownRate(
  variant: string,
  batches: readonly OpenBatch[],
  wanted: AutoTrials,
  { records }: Ledger,
): KnownRate {
  const cases = new Map<string, CaseVerdicts>();
  for (const trial of batches.flatMap(({ key }) => listTrials(records, key))) {
    if (trial.variant !== variant || trial.verdict === undefined) continue;
    const verdicts = cases.get(trial.caseId) ?? { id: trial.caseId, passed: 0, failed: 0, void: 0 };
    verdicts[trial.verdict]++;
    cases.set(trial.caseId, verdicts);
  }
  return { variant, ...furtherTrials([...cases.values()], wanted) };
}

/**
 * The batches to run next. All cases of a batch get the smallest number of trials that one of them needs.
 * Variants that need the same share a batch.
 */
function furtherPlans(plan: SuitePlan, rates: readonly KnownRate[]): SuitePlan[] {
  const wanting = rates.filter(({ needed }) => needed.size > 0);
  const alike = Map.groupBy(wanting, ({ needed }) => JSON.stringify([smallest(needed), ...needed.keys()]));
  return [...alike.values()].map((group) => {
    const needed = group[0]?.needed ?? new Map<string, number>();
    return {
      ...plan,
      trials: smallest(needed),
      cases: plan.cases.filter(({ request }) => needed.has(request.id)),
      variants: plan.variants.filter(({ name }) => group.some(({ variant }) => variant === name)),
    };
  });
}

function smallest(needed: ReadonlyMap<string, number>): number {
  return Math.min(limits.trials, ...needed.values());
}

function furtherTrialsText(plans: readonly SuitePlan[]): string {
  const parts = plans.map(({ variants, cases, trials }) => {
    const names = variants.map(({ name }) => name).join(', ');
    return `${trials} more of ${cases.length === 1 ? '1 case' : `${cases.length} cases`} on ${names}`;
  });
  return `not precise yet, further trials: ${parts.join('; ')}`;
}
