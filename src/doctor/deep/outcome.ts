import { randomBytes } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { execa } from 'execa';
import { parse, stringify } from 'yaml';
import { programFile } from '../../base/version.ts';
import { Redactor } from '../../redaction/redactor.ts';
import { table } from '../../text/fit.ts';
import { lines, ours, type Printable, stack, styled, text } from '../../text/printable.ts';
import type { SandboxRuntime } from '../checks/engine-content.ts';
import { type Attack, type AttackKind, type HostileSuite, hostileFolder } from './conformance.ts';

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

/** The line of an attack: how it ended, or why it was left out. */
export function rowOf(attack: Attack, seen: Seen | 'not run', reason: string | undefined): AttackRow {
  const { suite, id, name, expected } = attack;
  const broke = seen === 'not run' ? undefined : breakOf(attack, seen);
  return {
    suite,
    id,
    attack: name,
    expected,
    seen,
    ...(broke && { broke }),
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
  const cells = rows.map(({ suite, attack, expected, seen, broke }) => {
    return [suite, attack, expected, seen, broke === undefined ? '' : styled('red', broke)];
  });
  const leftOut = rows.flatMap(({ seen, reason }) => (seen === 'not run' && reason ? [reason] : []));
  const reasons = rows.flatMap((row) => (row.broke === undefined ? [] : [reasonOf(row)]));
  return stack([
    table(titles, cells),
    '',
    ...reasons,
    reasons.length > 0 && '',
    ...[...new Set(leftOut)].map((reason) => text`not run: ${lines(reason)}`),
    leftOut.length > 0 && '',
    // `forged 0, escaped 0, …`
    ours(breaks.map((name) => `${name} ${counts[name]}`).join(', ')),
  ]);
}

function reasonOf({ suite, id, attack, broke, reason }: AttackRow): Printable {
  const where = id === undefined ? suite : `${suite} ${id}`;
  const line = text`${where}: ${broke ?? ''}: ${attack}`;
  return reason === undefined ? line : text`${line}\n  ${lines(reason)}`;
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

/** Milliseconds for a suite, long enough to end only a suite that hangs. */
const longestMs = 30 * 60_000;

/** Trials at a time, so that other trials run beside an attack even on a small machine. */
const atATime = 3;

/** An engine's address, and the folder of certificates for it. */
export interface NamedHost {
  host: string;
  certificates?: string | undefined;
}

interface SuiteRequest {
  suite: HostileSuite;
  attacks: readonly Attack[];
  /** The runtime of all its sandboxes. */
  used: SandboxRuntime;
  /** Folders to write to: one for the suite's files, and one for the results. */
  folder: string;
  dataFolder: string;
  env: NodeJS.ProcessEnv;
  /** The engine of the configuration; undefined for the one of the environment. */
  engine: NamedHost | undefined;
  plantedKey: string;
  signal: AbortSignal;
}

/** The parts of what `offsite run --json` prints that are looked at. */
interface RunDocument {
  runs: {
    case: string;
    trials: { verdict: string; failures: string[]; cause?: { message: string } }[];
  }[];
}

export interface SuiteRun {
  /** Undefined if Offsite ended without one. */
  summary: RunDocument | undefined;
  /** How the process ended, for people. */
  ended: string;
  stdout: string;
  stderr: string;
}

/** Runs this Offsite's `offsite run` in a process of its own, so that an attack can end only that process. */
export async function runSuite(request: SuiteRequest): Promise<SuiteRun> {
  const { dataFolder, signal } = request;
  const { suite, config } = await writeSuite(request);
  const places = ['--config', config, '--data-folder', dataFolder];
  const ran = await execa(
    process.execPath,
    [programFile(), 'run', suite, '--json', '-c', String(atATime), ...places],
    {
      extendEnv: false,
      env: environment(request),
      cancelSignal: signal,
      timeout: longestMs,
      stdin: 'ignore',
      reject: false,
      stripFinalNewline: false,
      maxBuffer: 256 * 1024 ** 2,
    },
  );
  signal.throwIfAborted();
  return {
    summary: summaryIn(ran.stdout),
    ended:
      ran.exitCode === undefined
        ? (ran.shortMessage ?? 'it could not be started')
        : `exit code ${ran.exitCode}`,
    stdout: ran.stdout,
    stderr: ran.stderr,
  };
}

/** Writes the suite with only the chosen cases, beside all files that it refers to, for the runtime. */
async function writeSuite({ suite, attacks, folder, used, engine }: SuiteRequest) {
  await cp(hostileFolder(), folder, { recursive: true });
  const file = join(folder, `${suite}.yaml`);
  const chosen = new Set(attacks.map(({ id }) => id));
  const whole = parse(await readFile(file, 'utf8')) as { cases: { id: string }[] };
  await writeFile(file, stringify({ ...whole, cases: whole.cases.filter(({ id }) => chosen.has(id)) }));
  const config = join(folder, 'offsite.yaml');
  await writeFile(config, configWith({ ...used, engine }, await readFile(config, 'utf8')));
  return { suite: file, config };
}

/** The text of the suites' `offsite.yaml`, with the engine, and each of its sandboxes on the runtime. */
export function configWith(
  { runtime, mayLackFilter, engine }: SandboxRuntime & { engine?: NamedHost | undefined },
  text: string,
): string {
  const config = parse(text) as { sandboxes: Record<string, object> };
  const changes = {
    ...(runtime !== undefined && { runtime }),
    ...(mayLackFilter && { seccomp: 'if-available' }),
  };
  const sandboxes = Object.entries(config.sandboxes).map(([name, one]) => [name, { ...one, ...changes }]);
  return stringify({
    ...config,
    // An address may have nothing that can be a name.
    ...(engine && { engines: [{ name: 'engine', ...engine }] }),
    sandboxes: Object.fromEntries(sandboxes),
  });
}

/**
 * The user's environment, without the variables that name a service, another configuration, or the summary of
 * a CI step.
 */
function environment({ env, plantedKey }: SuiteRequest): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => !/^(OFFSITE|GITHUB)_/.test(name));
  return { ...Object.fromEntries(kept), NO_COLOR: '1', [keyVariable]: plantedKey };
}

function summaryIn(stdout: string): RunDocument | undefined {
  try {
    return JSON.parse(stdout) as RunDocument;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
