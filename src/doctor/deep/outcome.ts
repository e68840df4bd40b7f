import { randomBytes } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Redactor } from '../../redaction/redactor.ts';
import { lines, ours, type Printable, stack, styled, text } from '../../text/printable.ts';
import { table } from '../../text/table.ts';
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

export interface HostileReport {
  /** Whether all results were as expected. */
  held: boolean;
  counts: Counts;
  rows: AttackRow[];
}

/** The table of attacks, then each unexpected result with its reason, what was left out, and the counts. */
export function printedHostile({ rows, counts }: HostileReport): Printable {
  const titles = ['suite', 'attack', 'expected', 'seen', ''];
  const cells = rows.map(({ suite, attack, expected, seen, broke }) => [
    suite,
    attack,
    expected,
    seen,
    broke === undefined ? '' : styled('red', broke),
  ]);
  const leftOut = rows.flatMap(({ seen, reason }) => (seen === 'not run' && reason ? [reason] : []));
  const reasons = rows.flatMap((row) => (row.broke === undefined ? [] : [reasonOf(row)]));
  return stack([
    table(titles, cells),
    '',
    ...reasons,
    ...(reasons.length > 0 ? [''] : []),
    ...[...new Set(leftOut)].map((reason) => text`not run: ${lines(reason)}`),
    ...(leftOut.length > 0 ? [''] : []),
    countsLine(counts),
  ]);
}

function reasonOf({ suite, id, attack, broke, reason }: AttackRow): Printable {
  const where = id === undefined ? suite : `${suite} ${id}`;
  const line = text`${where}: ${broke ?? ''}: ${attack}`;
  return reason === undefined ? line : text`${line}\n  ${lines(reason)}`;
}

/** `forged 0, escaped 0, …` */
function countsLine(counts: Counts): Printable {
  return ours(breaks.map((name) => `${name} ${counts[name]}`).join(', '));
}

/** The variable that the suites' `offsite.yaml` names for a model's key. */
export const keyVariable = 'OFFSITE_HOSTILE_KEY';

/** A key that opens nothing. The suites' agents look for its beginning. */
export function newPlantedKey(): string {
  return `sk-offsite-hostile-${randomBytes(16).toString('hex')}`;
}

/** Whether the bytes contain the key in any encoding that we know. */
export function holdsKey(bytes: Buffer, key: string): boolean {
  return new Redactor([key]).find(bytes) !== undefined;
}

/** The files below the folder, by their paths in it, that contain the key in any encoding that we know. */
export async function filesWithKey(folder: string, key: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const found: string[] = [];
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    if (entry.name.includes(key) || (await holds(entry, path, key))) found.push(relative(folder, path));
  }
  return found;
}

async function holds(entry: Dirent, path: string, key: string): Promise<boolean> {
  if (!entry.isFile()) return false;
  try {
    return holdsKey(await readFile(path), key);
  } catch (error) {
    // A database removes its log when it is closed.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
