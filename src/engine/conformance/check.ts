import type { Clock } from '../../base/clock.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { Engine } from '../engine.ts';
import { NotChecked, type Testbed, testbedOn, Unmet } from './testbed.ts';

/** One thing that an engine must do for Offsite. */
export interface ConformanceCheck {
  /** What the engine must do, in plain words: continues "The engine". */
  name: string;
  /** What goes wrong in trials if it does not. */
  cost: string;
  /** Checks a real container. Throws {@link Unmet} or {@link NotChecked}; leaves nothing behind. */
  run(testbed: Testbed): Promise<void>;
}

export type Conformance = Pick<ConformanceCheck, 'name' | 'cost'> &
  ({ state: 'held' } | { state: 'failed' | 'skipped'; found: string });

export interface ConformanceOptions {
  /** The image of the containers: `offsite/base`, or one with the same programs. */
  imageId: string;
  clock: Clock;
  /** The runtime of the containers, which the engine knows; default: the engine's. */
  runtime?: string | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * Runs the checks one after the other, with containers of one runtime. Rejects if the caller aborts, or for a
 * defect in Offsite.
 */
export async function examineConformance(
  checks: readonly ConformanceCheck[],
  engine: Engine,
  options: ConformanceOptions,
): Promise<Conformance[]> {
  const seen: Conformance[] = [];
  for (const { name, cost, run } of checks) {
    options.signal?.throwIfAborted();
    seen.push({ name, cost, ...(await outcomeOf(run(testbedOn(engine, options)))) });
  }
  return seen;
}

async function outcomeOf(run: Promise<void>) {
  try {
    await run;
    return { state: 'held' } as const;
  } catch (error) {
    if (error instanceof NotChecked) return { state: 'skipped', found: error.message } as const;
    if (error instanceof Unmet || error instanceof OffsiteError) {
      return { state: 'failed', found: messageOf(error) } as const;
    }
    throw error;
  }
}
