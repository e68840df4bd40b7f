import type { Attack, AttackKind } from './attacks.ts';

/** What a trial of an attack came to. `nothing`: Offsite ended without a result of it. */
export type Seen = 'passed' | 'failed' | 'void' | 'nothing';

/** A line of the table. */
export interface AttackRow {
  suite: string;
  /** Of the case; absent where a whole suite is looked at. */
  id?: string;
  attack: string;
  expected: string;
  seen: string;
  /** What it counts as, where it is not what was expected. */
  broke?: Break;
  /** Why it came to that, in Offsite's words. */
  reason?: string;
}

/** What can go wrong, under the names by which it is counted. */
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
  // An agent that brings Offsite's own work to a halt leaves the trial without a verdict.
  if (seen === 'void') return kind === 'crash' ? 'crashes' : 'without a verdict';
  return brokenBy[kind];
}

export type Counts = Record<Break, number>;

export function countsOf(rows: readonly AttackRow[]): Counts {
  const counted = breaks.map((name) => [name, rows.filter(({ broke }) => broke === name).length]);
  return Object.fromEntries(counted) as Counts;
}
