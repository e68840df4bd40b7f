import { type ChangedPart, fingerprintChanges, type KnownFingerprint } from '../record/fingerprint.ts';
import {
  compareMeasures,
  compareRates,
  directionOf,
  type McNemar,
  type MeasureComparison,
} from '../stats/compare.ts';
import { couldBeWorse } from '../stats/further-trials.ts';
import {
  type CaseValues,
  type CaseVerdicts,
  type PassRate,
  passRate,
  usualConfidence,
} from '../stats/pass-rate.ts';
import { type Quantile, quantile } from '../stats/quantile.ts';
import { type Noise, noiseOf, type PassAtK, passAtEachK } from '../stats/repeats.ts';

/** The numbers that are compared besides verdicts. */
export const measures = ['durationMs', 'tokens', 'costUsd'] as const;
export type Measure = (typeof measures)[number];

/** One side of a comparison: the trials of one variant. */
export interface Side {
  batches: string[];
  /** What to know about the batches, such as that they replay, or that trials are left. */
  marks: string[];
  variant: string;
  cases: SideCase[];
  /** Of its trials with a verdict. Empty for a baseline. */
  fingerprints: KnownFingerprint[];
  /** Trials without a result. */
  unfinished: number;
  /** Trials whose result cannot be read, or has another verdict than the ledger. They do not count. */
  unreadable: number;
  /** For a side that is a baseline of the service: what it is made of. */
  baseline?: BaselineFacts;
}

export interface BaselineFacts {
  runs: number;
  /** The versions that the runs' harnesses reported. */
  harnessVersions: string[];
  profileVersions: string[];
}

export interface SideCase extends CaseVerdicts {
  /** The numbers of the scored trials, where they are known. */
  values: Record<Measure, number[]>;
}

/** A trial with the numbers that are known of it. Without a verdict, it does not count. */
interface MeasuredTrial {
  caseId: string;
  verdict: 'passed' | 'failed' | 'void' | undefined;
  numbers: { [Name in Measure]?: number | undefined };
}

/** Trials of one variant, by case. */
export function casesOf(trials: readonly MeasuredTrial[]): SideCase[] {
  return [...Map.groupBy(trials, ({ caseId }) => caseId)].map(([id, own]) => {
    const of = (verdict: MeasuredTrial['verdict']) => own.filter((trial) => trial.verdict === verdict);
    const [passed, failed] = [of('passed'), of('failed')];
    const scored = [...passed, ...failed];
    const values = forEachMeasure((measure) => scored.flatMap(({ numbers }) => numbers[measure] ?? []));
    return { id, passed: passed.length, failed: failed.length, void: of('void').length, values };
  });
}

/** What differs between two sides. */
export interface BriefComparison {
  a: BriefSummary;
  b: BriefSummary;
  difference: RateDifference;
  mcnemar: McNemar & {
    /** Cases that the test leaves out, because half of their trials passed on a side. */
    tied: string[];
  };
  /** The cases whose pass rate differs; those that got worse come first. */
  changes: CaseChange[];
  /** Cases with a scored trial on one side only. They are not compared. */
  onlyA: string[];
  onlyB: string[];
  /**
   * Cases with the same id of which not all trials ask and check the same. They are not compared: a
   * loosened check would count as an improvement. Undefined if that is unknown; all cases are then compared.
   */
  redefined: string[] | undefined;
  /** What differs in these cases, by case, if that is known: `prompt`, or `prompt within A`. */
  changedParts?: Record<string, string[]> | undefined;
  /** What else differs, if both sides are of one variant: its model, harness, profile or sandbox. */
  variantChanges?: ChangedPart[] | undefined;
  /** What stood behind names of models on one side, and is not known of the other. */
  unknownParts?: string[] | undefined;
  measures: Record<Measure, MeasureComparison>;
}

/** With what takes the longest for many trials: only commands show it. */
export interface Comparison extends BriefComparison {
  a: SideSummary;
  b: SideSummary;
  difference: RateDifference & {
    /** Whether the finding would be `worse` if all trials of B had failed. With few cases it would not. */
    couldBeWorse: boolean;
  };
}

interface BriefSummary {
  batches: string[];
  marks: string[];
  variant: string;
  /** Present if the side is a baseline of the service. */
  baseline?: BaselineFacts;
  /** Of the compared cases, or of all if none can be compared. Undefined if no trial was scored. */
  passRate: PassRate | undefined;
  void: number;
  unfinished: number;
  unreadable: number;
  noise: Noise;
}

export interface SideSummary extends BriefSummary {
  passAtK: PassAtK[];
  /** Median, 90 % and 95 % quantile of the scored trials; empty if none has the number. */
  quantiles: Record<Measure, Quantile[]>;
}

export interface RateDifference {
  /** `b - a`, from -1 to 1; undefined without a case in common. */
  value: number | undefined;
  low: number | undefined;
  high: number | undefined;
  confidence: number;
  cases: number;
  /** `worse` and `better` only if the interval excludes zero. */
  finding: 'worse' | 'better' | 'noise' | 'nothing-in-common';
}

export interface CaseChange {
  case: string;
  a: { passed: number; scored: number };
  b: { passed: number; scored: number };
}

/**
 * The confidence of each of several comparisons. Each further one is one more chance to find a difference
 * that is luck. With n comparisons, the intervals therefore get the confidence 1 - 0.05 / n (Dunn, "Multiple
 * Comparisons Among Means", Journal of the American Statistical Association 56, 1961), so that all of them
 * hold together with 95 %.
 */
export function confidenceOf(comparisons: number): number {
  return 1 - (1 - usualConfidence) / comparisons;
}

/**
 * Compares two sides. Cases of which not all trials ask and check the same are left out.
 *
 * @param confidence of the difference of pass rates; other intervals have 95 %
 * @param otherwise the cases to leave out if the sides have no fingerprints that say it
 */
export function compareSides(a: Side, b: Side, confidence: number, otherwise?: string[]): Comparison {
  const { brief, sameA, sameB, compared } = compare(a, b, confidence, otherwise);
  const { finding } = brief.difference;
  const detailed = (summary: BriefSummary, { cases }: Side): SideSummary => {
    const shown = shownCases(cases, compared);
    return {
      ...summary,
      passAtK: passAtEachK(shown),
      quantiles: forEachMeasure((measure) =>
        [0.5, 0.9, 0.95].flatMap((level) => quantile(valuesOf(shown, measure), level) ?? []),
      ),
    };
  };
  return {
    ...brief,
    a: detailed(brief.a, a),
    b: detailed(brief.b, b),
    difference: {
      ...brief.difference,
      couldBeWorse: finding === 'worse' || couldBeWorse(sameA, sameB, confidence),
    },
  };
}

/** As {@link compareSides}, without what only commands show. */
export function compareBriefly(a: Side, b: Side, confidence: number): BriefComparison {
  return compare(a, b, confidence).brief;
}

/** As {@link compareSides}, without all that takes long for many trials. */
export function compareRatesOnly(a: Side, b: Side, confidence: number): ComparedRates {
  const { difference, rates } = compareVerdicts(a, b, confidence);
  const compared = new Set(rates.cases.map(({ id }) => id));
  const rateOf = ({ cases }: Side) => ({ passRate: passRate(shownCases(cases, compared)) });
  return { a: rateOf(a), b: rateOf(b), difference };
}

interface ComparedRates {
  a: Pick<BriefSummary, 'passRate'>;
  b: Pick<BriefSummary, 'passRate'>;
  difference: RateDifference;
}

/** The scored trials of a case on each side, rounded up. At least one. */
export function trialsOfSides({ a, b, difference }: ComparedRates): [number, number] {
  const cases = Math.max(1, difference.cases);
  const ofCase = ({ passRate }: ComparedRates['a']) =>
    Math.max(1, Math.ceil(passRate ? (passRate.passed + passRate.failed) / cases : 0));
  return [ofCase(a), ofCase(b)];
}

function compare(a: Side, b: Side, confidence: number, otherwise?: string[]) {
  const { changed, redefined, sameA, sameB, rates, difference } = compareVerdicts(
    a,
    b,
    confidence,
    otherwise,
  );
  const { mcnemar, tied, onlyA, onlyB, cases } = rates;
  const compared = new Set(cases.map(({ id }) => id));
  const [countsOfA, countsOfB] = [countsOf(a), countsOf(b)];
  const brief: BriefComparison = {
    a: summaryOf(a, compared),
    b: summaryOf(b, compared),
    difference,
    mcnemar: { ...mcnemar, tied },
    changes: cases
      .filter((one) => one.a !== one.b)
      .sort((one, other) => one.b - one.a - (other.b - other.a))
      .map(({ id }) => ({ case: id, a: countsOfA(id), b: countsOfB(id) })),
    onlyA,
    onlyB,
    redefined,
    changedParts: changed?.cases,
    variantChanges: a.variant === b.variant ? changed?.variant : undefined,
    unknownParts: changed?.unknown,
    measures: forEachMeasure((measure) =>
      compareMeasures(valuesOf(sameA, measure), valuesOf(sameB, measure)),
    ),
  };
  return { brief, sameA, sameB, compared };
}

function compareVerdicts(a: Side, b: Side, confidence: number, otherwise?: string[]) {
  const changed = fingerprintChanges(a.fingerprints, b.fingerprints);
  const redefined = changed ? Object.keys(changed.cases) : otherwise;
  const leftOut = new Set(redefined);
  const same = ({ cases }: Side) => cases.filter(({ id }) => !leftOut.has(id));
  const [sameA, sameB] = [same(a), same(b)];
  const rates = compareRates(sameA, sameB, { confidence });
  const finding = { up: 'better', down: 'worse', none: 'noise' } as const;
  const difference: RateDifference = {
    value: rates.difference,
    low: rates.interval?.low,
    high: rates.interval?.high,
    confidence,
    cases: rates.cases.length,
    finding: rates.difference === undefined ? 'nothing-in-common' : finding[directionOf(rates.interval)],
  };
  return { changed, redefined, sameA, sameB, rates, difference };
}

function summaryOf(whole: Side, compared: ReadonlySet<string>): BriefSummary {
  const { batches, marks, variant, unfinished, unreadable, baseline } = whole;
  const cases = shownCases(whole.cases, compared);
  return {
    batches,
    marks,
    variant,
    ...(baseline && { baseline }),
    passRate: passRate(cases),
    void: whole.cases.reduce((sum, one) => sum + one.void, 0),
    unfinished,
    unreadable,
    noise: noiseOf(cases),
  };
}

/** The cases of the difference: rates and numbers are about them, or about all if none is compared. */
function shownCases(cases: readonly SideCase[], compared: ReadonlySet<string>): readonly SideCase[] {
  return compared.size === 0 ? cases : cases.filter(({ id }) => compared.has(id));
}

function forEachMeasure<Result>(make: (measure: Measure) => Result): Record<Measure, Result> {
  const entries = measures.map((measure) => [measure, make(measure)] as const);
  return Object.fromEntries(entries) as Record<Measure, Result>;
}

function countsOf({ cases }: Side): (id: string) => CaseChange['a'] {
  const byId = new Map(cases.map((one) => [one.id, one]));
  return (id) => {
    const { passed = 0, failed = 0 } = byId.get(id) ?? {};
    return { passed, scored: passed + failed };
  };
}

/** One measure of cases, for the functions of `stats/`. */
function valuesOf(cases: readonly SideCase[], measure: Measure): CaseValues[] {
  return cases.map(({ id, values }) => ({ id, values: values[measure] }));
}
