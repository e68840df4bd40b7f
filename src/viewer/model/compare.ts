import {
  type BriefComparison,
  casesOf as casesOfSide,
  compareBriefly,
  compareRatesOnly,
  confidenceOf,
  type Measure,
  measures,
  type SideCase,
  trialsOfSides,
} from '../../comparison/compare-sides.ts';
import { mean, usualConfidence } from '../../stats/pass-rate.ts';
import { findingText, tooFewTexts } from '../../text/finding.ts';
import { changeWord } from '../../text/quantities.ts';
import { passRate, variantsOf } from './grid.ts';
import type { BatchPage, TrialRow } from './shapes.ts';

/**
 * What happened to a case. `regressed` and `fixed`: most of its trials passed on one side, and most failed on
 * the other. `worse` and `better`: its pass rate changed less. `only-a`, `only-b`: the other side has no
 * verdict. `unscored`: no side has. `redefined`: not all its trials ask and check the same, so that
 * its verdicts are not compared.
 */
export type Change =
  | ('regressed' | 'fixed' | 'worse' | 'better' | 'only-a' | 'only-b' | 'same' | 'unscored')
  | 'redefined';

/** In the order in which a page lists them. */
const changes: readonly Change[] = [
  ...(['regressed', 'fixed', 'worse', 'better', 'redefined'] as const),
  ...(['only-a', 'only-b', 'same', 'unscored'] as const),
];

export interface ComparedCase {
  caseId: string;
  caseName: string;
  a: TrialRow[];
  b: TrialRow[];
  change: Change;
  /** What differs, if it is `redefined`. */
  parts?: string[] | undefined;
  /** The mean of B's scored trials less that of A's. Absent if one of them is not known. */
  deltas: Partial<Record<Measure, number>>;
}

export interface ComparedTrials extends BriefComparison {
  /** Flips first. */
  cases: ComparedCase[];
}

/** The trials of one variant of a batch. */
interface TrialsOfSide extends Pick<BatchPage, 'batch' | 'fingerprints'> {
  variant: string;
  trials: readonly TrialRow[];
}

/** Compares trials as `offsite compare` does, and case by case. Here, replays have times and numbers. */
export function compareTrials(
  a: TrialsOfSide,
  b: TrialsOfSide,
  confidence: number = usualConfidence,
): ComparedTrials {
  const [one, other] = [sideOf(a), sideOf(b)];
  const compared = compareBriefly(one, other, confidence);
  const { changedParts = {} } = compared;
  const redefined = new Set(compared.redefined);
  const [ofA, ofB] = [one, other].map(({ cases }) => new Map(cases.map((each) => [each.id, each])));
  const rowsOfA = Map.groupBy(one.trials, ({ caseId }) => caseId);
  const rowsOfB = Map.groupBy(other.trials, ({ caseId }) => caseId);
  const cases = [...new Set([...rowsOfA.keys(), ...rowsOfB.keys()])].map((caseId): ComparedCase => {
    const [a, b] = [rowsOfA.get(caseId) ?? [], rowsOfB.get(caseId) ?? []];
    const shown = { caseId, caseName: (a[0] ?? b[0])?.caseName ?? caseId, a, b };
    if (redefined.has(caseId))
      return { ...shown, change: 'redefined', parts: changedParts[caseId], deltas: {} };
    const sides = [ofA?.get(caseId), ofB?.get(caseId)] as const;
    return { ...shown, change: changeOf(...sides), deltas: deltasOf(...sides) };
  });
  cases.sort((one, other) => changes.indexOf(one.change) - changes.indexOf(other.change));
  return { ...compared, cases };
}

/** Which of the two variants of a batch that has ended is better, and whether that may be noise. */
export function findingOf(page: BatchPage): string | undefined {
  const [left, right, ...others] = variantsOf(page.trials);
  if (left === undefined || right === undefined || others.length > 0) return undefined;
  // While trials run, one variant may be ahead by its quickest cases.
  if (page.batch.unfinished > 0 || lacksTrials(page)) return undefined;
  const [a, b] = [sideOf({ ...page, variant: left }), sideOf({ ...page, variant: right })];
  const rates = compareRatesOnly(a, b, usualConfidence);
  const found = [findingText(rates.difference), ...tooFewTexts(rates.difference, trialsOfSides(rates))];
  return `${right} (B) compared with ${left} (A): ${found.join(' ')}`;
}

/** Whether it is an exported page of the trials with some verdicts. */
export function lacksTrials({ batch, trials }: BatchPage): boolean {
  return trials.length < batch.passed + batch.failed + batch.void + batch.unfinished;
}

function sideOf({ batch, fingerprints, variant, trials }: TrialsOfSide) {
  const own = trials.filter((trial) => trial.variant === variant);
  return {
    batches: [batch.id],
    marks: batch.marks,
    variant,
    trials: own,
    cases: casesOf(own.filter((trial) => !trial.unreadable)),
    fingerprints: fingerprints.filter((one) => one.variant === variant),
    unfinished: own.filter(({ verdict }) => verdict === undefined).length,
    unreadable: own.filter((trial) => trial.unreadable).length,
  };
}

/** The cases of trials, with their verdicts and numbers, as statistics take them. */
export function casesOf(trials: readonly TrialRow[]): SideCase[] {
  return casesOfSide(
    trials.map(({ caseId, verdict, durationMs, tokens, costUsd }) => {
      return { caseId, verdict, numbers: { durationMs, tokens, costUsd } };
    }),
  );
}

function changeOf(a: SideCase | undefined, b: SideCase | undefined): Change {
  const [before, after] = [a && passRate(a), b && passRate(b)];
  if (before === undefined) return after === undefined ? 'unscored' : 'only-b';
  if (after === undefined) return 'only-a';
  if (before > 0.5 && after < 0.5) return 'regressed';
  if (before < 0.5 && after > 0.5) return 'fixed';
  if (before === after) return 'same';
  return changeWord(before, after);
}

function deltasOf(a: SideCase | undefined, b: SideCase | undefined): ComparedCase['deltas'] {
  const known = measures.flatMap((measure) => {
    const [ofA = [], ofB = []] = [a?.values[measure], b?.values[measure]];
    return ofA.length === 0 || ofB.length === 0 ? [] : [[measure, mean(ofB) - mean(ofA)]];
  });
  return Object.fromEntries(known);
}

export interface VariantChoice {
  a: string | undefined;
  b: string | undefined;
  /**
   * Of the difference of pass rates. If several variants of two batches can be compared, each comparison may
   * find a difference that is luck, so each gets a wider interval.
   */
  confidence: number;
  /** How many variants both batches have. */
  inCommon: number;
}

/** Which variants to compare: those that a person chose, else those of the same name, else the first ones. */
export function chooseVariants(
  a: { trials: readonly TrialRow[]; variant: string | undefined },
  b: { trials: readonly TrialRow[]; variant: string | undefined },
  isOneBatch: boolean,
): VariantChoice {
  const [ofA, ofB] = [variantsOf(a.trials), variantsOf(b.trials)];
  const common = ofA.filter((name) => ofB.includes(name));
  const isChosen = a.variant !== undefined || b.variant !== undefined;
  const first = a.variant ?? (b.variant !== undefined && common.includes(b.variant) ? b.variant : undefined);
  const left = first ?? (isOneBatch ? ofA.find((name) => name !== b.variant) : (common[0] ?? ofA[0]));
  const other = isOneBatch ? ofB.find((name) => name !== left) : ofB.find((name) => name === left);
  return {
    a: left,
    b: b.variant ?? other ?? ofB[0],
    confidence: confidenceOf(isChosen || isOneBatch ? 1 : Math.max(1, common.length)),
    inCommon: isOneBatch ? 1 : common.length,
  };
}
