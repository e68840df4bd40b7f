import type { Clock } from '../../clock.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Runner } from '../../harness/runner.ts';
import type { ErrorKind } from '../../offsite-error.ts';
import type { Config } from '../../suite/config-file.ts';

/** What a check saw. `skipped` is neither good nor bad: it could not be looked at, and `found` says why. */
export type Finding =
  | { state: 'ok' | 'skipped'; found: string }
  | { state: 'warn'; found: string; mend: string }
  /** `input`: a setting of the user's is wrong; `infrastructure`: something is missing or broken. */
  | { state: 'fail'; kind: ErrorKind; found: string; mend: string };

/** One thing that trials need. */
export interface Check {
  /** As the report calls it. */
  name: string;
  /** Looks, and says what it saw. What it throws counts as a failure. */
  run(surroundings: Surroundings): Promise<Finding>;
}

/** Something that other checks build upon, or why it could not be had. */
export type Attempt<Value> = { got: true; value: Value } | { got: false; error: unknown };

export interface Surroundings {
  env: NodeJS.ProcessEnv;
  clock: Clock;
  signal: AbortSignal;
  runners: readonly Runner[];
  insecureHttp: boolean | undefined;
  /** The configuration; where it cannot be read, all that depends on it is looked at with the defaults. */
  config: Config;
  configFailure: unknown;
  dataFolder: string;
  engine: Attempt<Engine>;
}

/** A check that needs the engine; without one it is skipped. */
export function engineCheck(
  name: string,
  look: (engine: Engine, surroundings: Surroundings) => Promise<Finding>,
): Check {
  return {
    name,
    run: async (surroundings) =>
      surroundings.engine.got
        ? look(surroundings.engine.value, surroundings)
        : { state: 'skipped', found: 'no engine to ask' },
  };
}
