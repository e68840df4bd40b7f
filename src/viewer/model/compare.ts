import {
  compareMeasures,
  compareRates,
  directionOf,
  type MeasureComparison,
  type RateComparison,
} from '../../stats/compare.ts';
import { type CaseValues, type CaseVerdicts, usualConfidence } from '../../stats/pass-rate.ts';
import { type Noise, noiseOf } from '../../stats/repeats.ts';
import { changeWord } from '../../text/quantities.ts';
import { type GridTrial, passRate, tallyOf, variantsOf } from './grid.ts';

/**
 * What happened to a case. `regressed` and `fixed`: most of its trials passed on one side, and most failed on
 * the other. `worse` and `better`: its pass rate changed less. `only-a`, `only-b`: the other side has no
 * verdict. `unscored`: no side has. `redefined`: it asks or checks something else on the two sides, so that
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

export const measures = ['durationMs', 'totalTokens', 'costUsd'] as const;
export type Measure = (typeof measures)[number];

export interface ComparedCase {
  caseId: string;
  caseName: string;
  a: GridTrial[];
  b: GridTrial[];
  change: Change;
  /** What differs, if it is `redefined`. */
  parts?: string[] | undefined;
  /** The mean of B's scored trials less that of A's. Absent if one of them is not known. */
  deltas: Partial<Record<Measure, number>>;
}

export interface ComparedTrials {
  /** Flips first. */
  cases: ComparedCase[];
  rates: RateComparison;
  finding: 'better' | 'worse' | 'noise' | 'nothing-in-common';
  measures: Record<Measure, MeasureComparison>;
  noise: { a: Noise; b: Noise };
}

/**
 * Compares two lists of trials, each of one variant, paired by case.
 *
 * @param changed the cases that ask or check something else on the two sides, with what differs
 */
export function compareTrials(
  allOfA: readonly GridTrial[],
  allOfB: readonly GridTrial[],
  confidence: number = usualConfidence,
  changed: Readonly<Record<string, string[]>> = {},
): ComparedTrials {
  const isSame = ({ caseId }: GridTrial) => !Object.hasOwn(changed, caseId);
  const [a, b] = [allOfA.filter(isSame), allOfB.filter(isSame)];
  const verdicts = { a: caseVerdicts(a), b: caseVerdicts(b) };
  const rates = compareRates(verdicts.a, verdicts.b, { confidence });
  const findings = { up: 'better', down: 'worse', none: 'noise' } as const;
  return {
    cases: casesOf(allOfA, allOfB, changed),
    rates,
    finding: rates.difference === undefined ? 'nothing-in-common' : findings[directionOf(rates.interval)],
    measures: forEach((measure) => compareMeasures(caseValues(a, measure), caseValues(b, measure))),
    noise: { a: noiseOf(verdicts.a), b: noiseOf(verdicts.b) },
  };
}

/** The verdicts of each case, as statistics take them. */
export function caseVerdicts(trials: readonly GridTrial[]): CaseVerdicts[] {
  return [...byCase(trials)].map(([id, ofCase]) => {
    const { passed, failed, void: missing } = tallyOf(ofCase);
    return { id, passed, failed, void: missing };
  });
}

function casesOf(
  a: readonly GridTrial[],
  b: readonly GridTrial[],
  changed: Readonly<Record<string, string[]>>,
): ComparedCase[] {
  const [ofA, ofB] = [byCase(a), byCase(b)];
  const ids = [...new Set([...ofA.keys(), ...ofB.keys()])];
  const cases = ids.map((caseId): ComparedCase => {
    const sides = { a: ofA.get(caseId) ?? [], b: ofB.get(caseId) ?? [] };
    const caseName = [...sides.a, ...sides.b][0]?.caseName ?? caseId;
    return {
      caseId,
      caseName,
      ...sides,
      ...(Object.hasOwn(changed, caseId)
        ? { change: 'redefined' as const, parts: changed[caseId], deltas: {} }
        : { change: changeOf(sides.a, sides.b), deltas: deltasOf(sides.a, sides.b) }),
    };
  });
  return cases.sort((one, other) => changes.indexOf(one.change) - changes.indexOf(other.change));
}

function changeOf(a: readonly GridTrial[], b: readonly GridTrial[]): Change {
  const [before, after] = [passRate(tallyOf(a)), passRate(tallyOf(b))];
  if (before === undefined) return after === undefined ? 'unscored' : 'only-b';
  if (after === undefined) return 'only-a';
  if (before > 0.5 && after < 0.5) return 'regressed';
  if (before < 0.5 && after > 0.5) return 'fixed';
  if (before === after) return 'same';
  return changeWord(before, after);
}

function deltasOf(a: readonly GridTrial[], b: readonly GridTrial[]): Partial<Record<Measure, number>> {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const known = measures.flatMap((measure) => {
    const [ofA, ofB] = [valuesOf(a, measure), valuesOf(b, measure)];
    return ofA.length === 0 || ofB.length === 0 ? [] : [[measure, mean(ofB) - mean(ofA)]];
  });
  return Object.fromEntries(known);
}

function caseValues(trials: readonly GridTrial[], measure: Measure): CaseValues[] {
  return [...byCase(trials)].map(([id, ofCase]) => ({ id, values: valuesOf(ofCase, measure) }));
}

/** The numbers of scored trials, where they are known. */
function valuesOf(trials: readonly GridTrial[], measure: Measure): number[] {
  return trials
    .filter(({ verdict }) => verdict === 'passed' || verdict === 'failed')
    .flatMap(({ summary }) => summary?.[measure] ?? []);
}

function byCase(trials: readonly GridTrial[]): Map<string, GridTrial[]> {
  return Map.groupBy(trials, ({ caseId }) => caseId);
}

function forEach<Result>(make: (measure: Measure) => Result): Record<Measure, Result> {
  const entries = measures.map((measure) => [measure, make(measure)] as const);
  return Object.fromEntries(entries) as Record<Measure, Result>;
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
  a: { trials: readonly GridTrial[]; variant: string | undefined },
  b: { trials: readonly GridTrial[]; variant: string | undefined },
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
    confidence:
      isChosen || isOneBatch ? usualConfidence : 1 - (1 - usualConfidence) / Math.max(1, common.length),
    inCommon: isOneBatch ? 1 : common.length,
  };
}
