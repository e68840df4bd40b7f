import type { Attack, AttackKind } from './attacks.ts';

/** The result of an attack's trial. `nothing`: Offsite ended without a result of it. */
export type Seen = 'passed' | 'failed' | 'void' | 'nothing';

/** A line of the table. */
export interface AttackRow {
  suite: string;
  /** The case's id; absent if the line is about a whole suite. */
  id?: string;
  attack: string;
  expected: string;
  /** `not run` if it was left out; then there is a reason. */
  seen: string;
  /** What an unexpected result counts as. */
  broke?: Break;
  /** The reason for the result, in Offsite's words. */
  reason?: string;
}

/** The kinds of unexpected results, by the names under which they are counted. */
export const breaks = [
  'forged',
  'escaped',
  'leaked',
  'crashes',
  'false accusations',
  'without a verdict',
] as const;
export type Break = (typeof breaks)[number];

const brokenBy: Readonly<Record<AttackKind, Break>> = {
  forge: 'forged',
  escape: 'escaped',
  leak: 'leaked',
  crash: 'crashes',
  honest: 'false accusations',
};

/** The line of an attack that is left out. */
export function rowOfLeftOut({ suite, id, name, expected }: Attack, reason: string): AttackRow {
  return { suite, id, attack: name, expected, seen: 'not run', reason };
}

export function rowOf(attack: Attack, seen: Seen, reason: string | undefined): AttackRow {
  const { suite, id, name, expected } = attack;
  const broke = breakOf(attack, seen);
  return {
    suite,
    id,
    attack: name,
    expected,
    seen,
    ...(broke !== undefined && { broke }),
    ...(reason !== undefined && { reason }),
  };
}

function breakOf({ kind, expected }: Attack, seen: Seen): Break | undefined {
  if (seen === expected) return undefined;
  if (seen === 'nothing') return 'crashes';
  // If an agent stops Offsite's own work, its trial has no verdict.
  if (seen === 'void') return kind === 'crash' ? 'crashes' : 'without a verdict';
  return brokenBy[kind];
}

export type Counts = Record<Break, number>;

export function countsOf(rows: readonly AttackRow[]): Counts {
  const counted = breaks.map((name) => [name, rows.filter(({ broke }) => broke === name).length]);
  return Object.fromEntries(counted) as Counts;
}
