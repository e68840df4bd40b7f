import type { Clock } from '../base/clock.ts';
import { type ErrorKind, messageOf, OffsiteError } from '../base/offsite-error.ts';
import type { Engine } from '../engine/engine.ts';
import type { Runner } from '../harness/runner.ts';
import type { Config } from '../suite/config-file.ts';

export type Examined = { name: string } & Finding;

/**
 * Runs the checks one after the other. Rejects if the user interrupts, or if a check meets a bug in Offsite.
 */
export async function examine(checks: readonly Check[], surroundings: Surroundings): Promise<Examined[]> {
  const examined: Examined[] = [];
  for (const check of checks) {
    surroundings.signal.throwIfAborted();
    if (surroundings.configFailure !== undefined && (check.ofEngine || check.ofConfiguration)) {
      examined.push({ name: check.name, ...skipped('the configuration cannot be read') });
      continue;
    }
    try {
      examined.push({ name: check.name, ...(await check.run(surroundings)) });
    } catch (error) {
      surroundings.signal.throwIfAborted();
      examined.push({ name: check.name, ...failureOf(error) });
    }
  }
  return examined;
}

/** What a thrown error means for the user. Rethrows a bug in Offsite. */
export function failureOf(error: unknown): Finding {
  if (error instanceof OffsiteError) {
    const fix = error.hint ?? 'Correct what is named here.';
    return { state: 'fail', kind: error.kind, found: error.message, fix };
  }
  // Errors of the system (EACCES, ENOSPC) and of SQLite have a code; a bug in Offsite has none.
  if (error instanceof Error && 'code' in error)
    return fail(messageOf(error), "Check this machine's disk, permissions and network.");
  throw error;
}

export async function attempt<Value>(get: () => Value | Promise<Value>): Promise<Prerequisite<Value>> {
  try {
    return { got: true, value: await get() };
  } catch (error) {
    return { got: false, error };
  }
}

/** What a check found. `skipped` is neither good nor bad: the check could not run, and `found` says why. */
export type Finding =
  | { state: 'ok' | 'skipped'; found: string }
  | { state: 'warn'; found: string; fix: string }
  /** `input`: a setting of the user's is wrong; `infrastructure`: something is missing or broken. */
  | { state: 'fail'; kind: ErrorKind; found: string; fix: string };

export const ok = (found: string): Finding => ({ state: 'ok', found });
export const skipped = (found: string): Finding => ({ state: 'skipped', found });
export const warn = (found: string, fix: string): Finding => ({ state: 'warn', found, fix });
/** Something is missing or broken. */
export function fail(found: string, fix: string): Finding {
  return { state: 'fail', kind: 'infrastructure', found, fix };
}

/** One thing that trials need. */
export interface Check {
  /**
   * Whether the check is about an engine, so that it is repeated for each of several, and skipped if the
   * configuration cannot be read: it may name another one.
   */
  ofEngine?: true;
  /** Whether it looks at what the configuration names. It is skipped if that cannot be read. */
  ofConfiguration?: true;
  /** The check's name in the report. */
  name: string;
  /** Runs the check. If it throws, that counts as a failure. */
  run(surroundings: Surroundings): Promise<Finding>;
}

/** Something that checks need, or the error with which it could not be opened. */
export type Prerequisite<Value> = { got: true; value: Value } | { got: false; error: unknown };

interface Surroundings {
  env: NodeJS.ProcessEnv;
  clock: Clock;
  signal: AbortSignal;
  runners: readonly Runner[];
  insecureHttp: boolean | undefined;
  /** The configuration; the defaults if it cannot be read. */
  config: Config;
  configFailure: unknown;
  dataFolder: string;
  engine: Prerequisite<Engine>;
}

/** A check that needs the engine. It is skipped if there is none. */
export function engineCheck(
  name: string,
  look: (engine: Engine, surroundings: Surroundings) => Promise<Finding>,
): Check {
  return {
    name,
    ofEngine: true,
    run: async (surroundings) =>
      surroundings.engine.got ? look(surroundings.engine.value, surroundings) : skipped('no engine to ask'),
  };
}

/** `850 MiB`, `12.3 GiB`. */
export function byteSize(bytes: number): string {
  const mebibytes = bytes / 1024 ** 2;
  return mebibytes < 1024 ? `${Math.floor(mebibytes)} MiB` : `${(mebibytes / 1024).toFixed(1)} GiB`;
}
