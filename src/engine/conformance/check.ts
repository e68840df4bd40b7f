import type { Clock } from '../../clock.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { Engine } from '../engine.ts';
import { type Place, placeOn } from './place.ts';

/** One thing that an engine must do for Offsite. */
export interface ConformanceCheck {
  /** What the engine does, in plain words: continues "The engine". */
  name: string;
  /** What goes wrong in trials where it does not. */
  cost: string;
  /**
   * Looks at what a real container does. Throws an {@link Unmet}, or {@link NotLookedAt}; leaves nothing
   * behind.
   */
  run(place: Place): Promise<void>;
}

/** The engine did something else. The message says what. */
export class Unmet extends Error {}

/** This engine cannot be asked, and Offsite does without. The message says why. */
export class NotLookedAt extends Error {}

export type Conformance = Pick<ConformanceCheck, 'name' | 'cost'> &
  ({ state: 'held' } | { state: 'failed' | 'skipped'; found: string });

export interface ConformanceOptions {
  /** What the containers are made of: `offsite/base`, or an image with what that has. */
  imageId: string;
  clock: Clock;
  signal?: AbortSignal | undefined;
}

/** Runs the checks one after the other. Rejects when the caller gives up, or for a defect of ours. */
export async function examineConformance(
  checks: readonly ConformanceCheck[],
  engine: Engine,
  options: ConformanceOptions,
): Promise<Conformance[]> {
  const seen: Conformance[] = [];
  for (const { name, cost, run } of checks) {
    options.signal?.throwIfAborted();
    seen.push({ name, cost, ...(await outcomeOf(run(placeOn(engine, options)))) });
  }
  return seen;
}

async function outcomeOf(run: Promise<void>) {
  try {
    await run;
    return { state: 'held' } as const;
  } catch (error) {
    if (error instanceof NotLookedAt) return { state: 'skipped', found: error.message } as const;
    if (error instanceof Unmet || error instanceof OffsiteError) {
      return { state: 'failed', found: messageOf(error) } as const;
    }
    throw error;
  }
}
