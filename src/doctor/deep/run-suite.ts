import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { parse, stringify } from 'yaml';
import { programFile } from '../../base/version.ts';
import type { SandboxRuntime } from '../runtimes.ts';
import { type Attack, type HostileSuite, hostileFolder } from './attacks.ts';
import { keyVariable } from './outcome.ts';

/** Milliseconds for a suite, long enough to end only a suite that hangs. */
const longestMs = 30 * 60_000;

/** Trials at a time, so that other trials run beside an attack even on a small machine. */
const atATime = 3;

/** An engine's address, and the folder of certificates for it. */
export interface NamedHost {
  host: string;
  certificates?: string | undefined;
}

export interface SuiteRequest {
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
  const sandboxes = Object.entries(config.sandboxes).map(([name, sandbox]) => [
    name,
    { ...sandbox, ...changes },
  ]);
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
  return {
    ...Object.fromEntries(kept),
    NO_COLOR: '1',
    [keyVariable]: plantedKey,
  };
}

function summaryIn(stdout: string): RunDocument | undefined {
  try {
    return JSON.parse(stdout) as RunDocument;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
