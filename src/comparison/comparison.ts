import { inputError } from '../base/offsite-error.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { begunWith } from '../text/nearest.ts';
import { type Comparison, compareSides, confidenceOf } from './compare-sides.ts';
import { type Reference, sideOf, variantsOf } from './side.ts';

/** The comparisons of two references, one for each variant. */
export interface ComparedBatches {
  comparisons: Comparison[];
  /** Variants that only one reference has. They are not compared. */
  variantsOnlyA: string[];
  variantsOnlyB: string[];
}

/**
 * Compares two references. Each variant is compared with the variant of the same name. If each reference has
 * one variant, these two are compared, whatever their names are.
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
    comparisons: pairs.map(([one, other]) =>
      compareSides(sideOf(ledger, a.batches, one), sideOf(ledger, b.batches, other), confidence),
    ),
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
