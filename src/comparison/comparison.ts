import { inputError } from '../base/offsite-error.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { type ChangedPart, fingerprintChanges } from '../record/fingerprint.ts';
import {
  compareMeasures,
  compareRates,
  directionOf,
  type McNemar,
  type MeasureComparison,
} from '../stats/compare.ts';
import { couldBeWorse } from '../stats/further-trials.ts';
import { type PassRate, passRate, usualConfidence } from '../stats/pass-rate.ts';
import { type Quantile, quantile } from '../stats/quantile.ts';
import { type Noise, noiseOf, type PassAtK, passAtEachK } from '../stats/repeats.ts';
import { begunWith } from '../text/nearest.ts';
import {
  type BaselineFacts,
  type Measure,
  measures,
  type Reference,
  type Side,
  sideOf,
  valuesOf,
  variantsOf,
} from './side.ts';

/** The comparisons of two references, one for each variant. */
export interface ComparedBatches {
  comparisons: Comparison[];
  /** Variants that only one reference has. They are not compared. */
  variantsOnlyA: string[];
  variantsOnlyB: string[];
}

export interface Comparison {
  a: SideSummary;
  b: SideSummary;
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
   * Cases with the same id that ask or check different things on the two sides. They are not compared: a
   * loosened check would count as an improvement. Undefined if that is unknown; all cases are then compared.
   */
  redefined: string[] | undefined;
  /** What differs in these cases, by case, if that is known. */
  changedParts?: Record<string, string[]> | undefined;
  /** What else differs, if both sides are of one variant: its model, harness, profile or sandbox. */
  variantChanges?: ChangedPart[] | undefined;
  /** What stood behind names of models on one side, and is not known of the other. */
  unknownParts?: string[] | undefined;
  measures: Record<Measure, MeasureComparison>;
}

export interface SideSummary {
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
  /** Whether the finding would be `worse` if all trials of B had failed. With few cases it would not. */
  couldBeWorse: boolean;
}

export interface CaseChange {
  case: string;
  a: { passed: number; scored: number };
  b: { passed: number; scored: number };
}

/**
 * Compares two references. Each variant is compared with the variant of the same name. If each reference has
 * one variant, these two are compared, whatever their names are.
 *
 * Each further comparison is one more chance to find a difference that is luck. With n comparisons, the
 * intervals therefore get the confidence 1 - 0.05 / n (Dunn, "Multiple Comparisons Among Means", Journal of
 * the American Statistical Association 56, 1961), so that all of them hold together with 95 %.
 *
 * Throws `VARIANT_UNKNOWN`, `VARIANTS_DIFFER` if no variant can be chosen, and `SAME_SIDES`.
 */
export function compareBatches(ledger: Ledger, a: Reference, b: Reference): ComparedBatches {
  const [ofA, ofB] = [variantsOf(ledger, a), variantsOf(ledger, b)];
  const pairs = comparedVariants(ofA, ofB);
  if (pairs.length === 0) {
    throw inputError('VARIANTS_DIFFER', `${a.name} and ${b.name} have no variant of the same name`, {
      hint: `Name one of each, as BATCH:VARIANT. ${a.name}: ${ofA.join(', ')}. ${b.name}: ${ofB.join(', ')}.${bothNamedHint(ledger, a)}`,
    });
  }
  const same = pairs.find(([one, other]) => one === other && sharesBatch(a, b));
  if (same) {
    throw inputError('SAME_SIDES', `${a.name} and ${b.name} are the same trials, of the variant ${same[0]}`, {
      hint: `Name two batches, or two variants of one${variantsHint(ofA)}. If only one is named, it is compared with the last one.${bothNamedHint(ledger, a)}`,
    });
  }
  const confidence = confidenceOf(pairs.length);
  return {
    comparisons: pairs.map(([one, other]) => {
      const sides = [sideOf(ledger, a.batches, one), sideOf(ledger, b.batches, other)] as const;
      const changed = fingerprintChanges(sides[0].fingerprints, sides[1].fingerprints);
      return compareSides(...sides, {
        confidence,
        redefined: changed && Object.keys(changed.cases),
        changedParts: changed?.cases,
        variantChanges: one === other ? changed?.variant : undefined,
        unknownParts: changed?.unknown,
      });
    }),
    variantsOnlyA: ofA.filter((name) => !pairs.some(([one]) => one === name)),
    variantsOnlyB: ofB.filter((name) => !pairs.some(([, other]) => other === name)),
  };
}

function variantsHint([one, other]: readonly string[]): string {
  return one === undefined || other === undefined ? '' : `, such as BATCH:${one} BATCH:${other}`;
}

/** For a variant that is named alone, perhaps to compare it with another one of its batch. */
function bothNamedHint(ledger: Ledger, { name, batches, variant }: Reference): string {
  if (variant === undefined) return '';
  const all = variantsOf(ledger, { name, batches, variant: undefined });
  const [meant] = begunWith(variant, all);
  const other = all.find((one) => one !== meant);
  const batch = name.slice(0, name.indexOf(':'));
  return other === undefined ? '' : ` Two variants of one batch: ${batch}:${meant} ${batch}:${other}.`;
}

/** The confidence of each of several comparisons: see {@link compareBatches}. */
export function confidenceOf(comparisons: number): number {
  return 1 - (1 - usualConfidence) / comparisons;
}

function sharesBatch(a: Reference, b: Reference): boolean {
  return a.batches.some(({ key }) => b.batches.some((other) => other.key === key));
}

/**
 * Which variant of A is compared with which of B: those of the same name, or the only one of each. Empty if
 * no variant can be chosen.
 */
export function comparedVariants(a: readonly string[], b: readonly string[]): [string, string][] {
  const [onlyA, ...moreA] = a;
  const [onlyB, ...moreB] = b;
  if (onlyA !== undefined && onlyB !== undefined && moreA.length + moreB.length === 0)
    return [[onlyA, onlyB]];
  return a.filter((name) => b.includes(name)).map((name) => [name, name]);
}

/** @param confidence of the difference of pass rates; other intervals have 95 % */
export function compareSides(
  a: Side,
  b: Side,
  {
    confidence,
    redefined,
    ...changes
  }: Pick<Comparison, 'redefined' | 'changedParts' | 'variantChanges' | 'unknownParts'> & {
    confidence: number;
  },
): Comparison {
  const [sameA, sameB] = [without(a, redefined), without(b, redefined)];
  const { mcnemar, tied, onlyA, onlyB, cases, ...rates } = compareRates(sameA.cases, sameB.cases, {
    confidence,
  });
  const direction = directionOf(rates.interval);
  const compared = new Set(cases.map(({ id }) => id));
  const finding = { up: 'better', down: 'worse', none: 'noise' } as const;
  return {
    a: summaryOf(a, compared),
    b: summaryOf(b, compared),
    difference: {
      value: rates.difference,
      low: rates.interval?.low,
      high: rates.interval?.high,
      confidence,
      cases: cases.length,
      finding: rates.difference === undefined ? 'nothing-in-common' : finding[direction],
      couldBeWorse: direction === 'down' || couldBeWorse(sameA.cases, sameB.cases, confidence),
    },
    mcnemar: { ...mcnemar, tied },
    changes: cases
      .filter((one) => one.a !== one.b)
      .sort((one, other) => one.b - one.a - (other.b - other.a))
      .map(({ id }) => ({ case: id, a: countsOf(a, id), b: countsOf(b, id) })),
    onlyA,
    onlyB,
    redefined,
    ...changes,
    measures: forEachMeasure((measure) =>
      compareMeasures(valuesOf(sameA, measure), valuesOf(sameB, measure)),
    ),
  };
}

function without(side: Side, redefined: readonly string[] = []): Side {
  return { ...side, cases: side.cases.filter(({ id }) => !redefined.includes(id)) };
}

/** @param compared the cases of the difference: rates and numbers are about them, or about all if none is */
function summaryOf(whole: Side, compared: ReadonlySet<string>): SideSummary {
  const { batches, marks, variant, unfinished, unreadable, baseline } = whole;
  const cases = compared.size === 0 ? whole.cases : whole.cases.filter(({ id }) => compared.has(id));
  const side = { ...whole, cases };
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
    passAtK: passAtEachK(cases),
    quantiles: forEachMeasure((measure) =>
      [0.5, 0.9, 0.95].flatMap((level) => quantile(valuesOf(side, measure), level) ?? []),
    ),
  };
}

function forEachMeasure<Result>(make: (measure: Measure) => Result): Record<Measure, Result> {
  const entries = measures.map((measure) => [measure, make(measure)] as const);
  return Object.fromEntries(entries) as Record<Measure, Result>;
}

function countsOf({ cases }: Side, id: string) {
  const { passed = 0, failed = 0 } = cases.find((one) => one.id === id) ?? {};
  return { passed, scored: passed + failed };
}
