import { mkdir, mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { unmetWishes } from '../../engine/capabilities.ts';
import { conformanceChecks } from '../../engine/conformance/checks.ts';
import type { Engine } from '../../engine/engine.ts';
import { plainRuntimes } from '../../engine/port/engine-port.ts';
import { plural } from '../../text/quantities.ts';
import type { UsedRuntime } from '../checks/engine-content.ts';
import {
  type Attack,
  attacksOf,
  type ConformanceReport,
  type HostileSuite,
  hostileSuites,
  runConformance,
} from './conformance.ts';
import {
  type AttackRow,
  countsOf,
  filesWithKey,
  type HostileReport,
  holdsKey,
  type NamedHost,
  newPlantedKey,
  rowOf,
  runSuite,
  type Seen,
  type SuiteRun,
} from './outcome.ts';

/** Hostile agents that were not run. This fails: nobody knows whether they are held. */
export interface HostileNotRun {
  held: false;
  /** Why, in plain words. */
  notRun: string;
  fix: string;
}

/** What `--deep` adds, for each runtime that sandboxes use and the engine knows. */
export interface DeepReports {
  /** Empty if the base image is missing. */
  conformance: ({ runtime: string } & ConformanceReport)[];
  hostile: ({ runtime: string } & (HostileReport | HostileNotRun))[];
}

interface DeepRequest {
  runtimes: readonly UsedRuntime[];
  /** The engine of the configuration; undefined for the one of the environment. */
  configured: NamedHost | undefined;
  clock: Clock;
  signal: AbortSignal;
  /** Called before each part, with what it is. */
  note: (what: string) => void;
}

/** With this setting, a sandbox does without the filter if it must. */
const lenient = 'seccomp: if-available';

/** Checks the engine first: if the engine fails, that explains why agents are not held. */
export async function lookDeep(engine: Engine, request: DeepRequest): Promise<DeepReports> {
  const reports: DeepReports = { conformance: [], hostile: [] };
  const { clock, signal, note } = request;
  const known = request.runtimes.filter(
    ({ runtime }) => runtime === undefined || engine.capabilities.runtimes.includes(runtime),
  );
  for (const used of known) {
    const runtime = used.name;
    const noteHere = (what: string) => note(known.length === 1 ? what : `${runtime}: ${what}`);
    noteHere(`what the engine must do: ${plural(conformanceChecks.length, 'check')}`);
    const conformance = await runConformance(engine, { clock, signal, runtime: used.runtime });
    if (conformance !== undefined) reports.conformance.push({ runtime, ...conformance });
    reports.hostile.push({ runtime, ...(await hostileOn(engine, used, { ...request, note: noteHere })) });
  }
  return reports;
}

async function hostileOn(
  { capabilities }: Engine,
  used: UsedRuntime,
  { configured, signal, note }: DeepRequest,
): Promise<HostileReport | HostileNotRun> {
  const lacks = used.mayLackFilter ? [] : unmetWishes(used, capabilities);
  if (lacks.length > 0) {
    const settings = [...(used.runtime === undefined ? [] : [`runtime: ${used.runtime}`]), lenient].join(
      ', ',
    );
    return {
      held: false,
      notRun: `all trials would be refused, because sandboxes cannot have ${lacks.join('; ')}`,
      fix: `In offsite.yaml, set ${lenient} for sandboxes of this runtime: sandboxes: { local: { ${settings} } }`,
    };
  }
  return runHostile({
    chosen: ({ deep }) => deep,
    used,
    env: process.env,
    engine: configured,
    signal,
    onSuite: (suite, attacks) => note(`hostile agents: ${suite}, ${plural(attacks, 'case')}`),
  });
}

/** Characters that control a terminal or change the direction of its text, except line breaks and tabs. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const steering = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/;

interface HostileRequest {
  /** Which attacks to run. */
  chosen: (attack: Attack) => boolean;
  /** The runtime of all sandboxes. */
  used: UsedRuntime;
  env: NodeJS.ProcessEnv;
  engine: NamedHost | undefined;
  signal: AbortSignal;
  /** Called before each suite, with the number of its attacks. */
  onSuite?: (suite: string, attacks: number) => void;
}

/**
 * Runs the hostile suites on this machine's engine, in a temporary data folder. Attacks on the machine's own
 * kernel are left out where sandboxes may have another one.
 */
export async function runHostile(request: HostileRequest): Promise<HostileReport> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-hostile-'));
  const dataFolder = join(folder.path, 'data');
  await mkdir(dataFolder, { mode: 0o700 });
  const plantedKey = newPlantedKey();
  const hasMachineKernel = plainRuntimes.includes(request.used.name);
  const rows: AttackRow[] = [];
  const runs: (SuiteRun & { suite: HostileSuite })[] = [];
  for (const suite of hostileSuites) {
    const chosen = attacksOf(suite).filter(request.chosen);
    const attacks = chosen.filter(({ isOfMachineKernel }) => hasMachineKernel || !isOfMachineKernel);
    const leftOut = chosen.filter((attack) => !attacks.includes(attack));
    if (attacks.length > 0) {
      request.onSuite?.(suite, attacks.length);
      const places = { folder: join(folder.path, suite), dataFolder };
      const run = await runSuite({ ...request, ...places, suite, attacks, plantedKey });
      runs.push({ ...run, suite });
      rows.push(...attacks.map((attack) => attackRow(attack, run)));
    }
    const why = `attacks on the machine's own kernel; with the runtime ${request.used.name}, sandboxes may have another`;
    rows.push(...leftOut.map((attack) => rowOf(attack, 'not run', why)));
  }
  rows.push(...runs.map(processRow), terminalRow(runs), await keyRow(runs, dataFolder, plantedKey));
  const counts = countsOf(rows);
  return { held: Object.values(counts).every((count) => count === 0), counts, rows };
}

function attackRow(attack: Attack, { summary }: SuiteRun): AttackRow {
  const trial = summary?.runs.find((run) => run.case === attack.id)?.trials[0];
  const seen = (trial?.verdict ?? 'nothing') as Seen;
  return rowOf(attack, seen, trial?.cause?.message ?? trial?.failures[0]);
}

function processRow({ suite, summary, ended, stderr }: SuiteRun & { suite: HostileSuite }): AttackRow {
  // Even with a summary, Offsite may have failed while it cleaned up.
  const isWhole = summary && /^exit code [03]$/.test(ended) && !stderr.includes('a defect of Offsite');
  const reason = stderr.trim().split('\n').slice(-12).join('\n');
  const broke = isWhole ? undefined : { seen: ended, broke: 'crashes' as const, reason };
  return rowOfAll(`Offsite itself reaches the end of ${suite}`, 'yes', broke);
}

/** A terminal may show the output, so it must contain no control characters except line breaks and tabs. */
function terminalRow(runs: readonly SuiteRun[]): AttackRow {
  const found = runs.some(({ stdout, stderr }) => steering.test(stdout) || steering.test(stderr));
  const attack = "commands for the reader's terminal in what Offsite prints";
  return rowOfAll(attack, 'none', found ? { seen: 'some', broke: 'leaked' } : undefined);
}

async function keyRow(runs: readonly SuiteRun[], dataFolder: string, key: string): Promise<AttackRow> {
  const printed = runs.filter(({ stdout, stderr }) => holdsKey(Buffer.from(stdout + stderr), key));
  const found = [...printed.map(() => 'the output'), ...(await filesWithKey(dataFolder, key))].join(', ');
  const attack = "the machine's key in what Offsite prints and keeps";
  return rowOfAll(attack, 'nowhere', found ? { seen: found, broke: 'leaked' } : undefined);
}

/** @param broke what was seen in place of the expected */
function rowOfAll(
  attack: string,
  expected: string,
  broke: Pick<AttackRow, 'seen' | 'broke' | 'reason'> = { seen: expected },
): AttackRow {
  return { suite: 'all', attack, expected, ...broke };
}
