import type { Claims } from '../claims.ts';
import type { Lease } from '../lease.ts';
import { NotClaimed } from '../not-claimed.ts';
import { sizeOfTrial } from '../trial-size.ts';
import type { Flight, WorkedTrial } from './flight.ts';
import type { Gate } from './gate.ts';

export interface AheadParts {
  flight: Flight<WorkedTrial>;
  claims: Claims;
  gate: Gate;
}

/**
 * Claims a worker's trials. The trial that gets the next permit is claimed and its sandbox started ahead,
 * while another trial works, unless it has services; each other trial is claimed when it has its permit.
 */
export class Ahead {
  readonly #parts: AheadParts;

  constructor(parts: AheadParts) {
    this.#parts = parts;
  }

  /**
   * Claims the trial that gets the next permit, and starts its sandbox. A trial that cannot be claimed leaves
   * the flight, and the one after it is tried. Never rejects.
   */
  async start(): Promise<void> {
    const { flight, claims, gate } = this.#parts;
    for (;;) {
      const next = flight.trials.find(({ state, isAhead }) => state === 'ready' && !isAhead);
      if (!next || gate.isHeld) return;
      next.isAhead = true;
      const lease = claims.acquire(next.trial, gate.stopped);
      next.lease = lease;
      try {
        await lease;
      } catch (error) {
        // If its turn has come meanwhile, it meets the same error.
        if (next.lease !== lease) return;
        next.lease = undefined;
        if (!(error instanceof NotClaimed)) return;
        next.canceling.abort(error);
        continue;
      }
      // Services take memory and processors, which only a permit gives.
      const hasServices = sizeOfTrial(next.spec).services.memory > 0;
      if (next.lease === lease && !hasServices) next.context.sandboxes.startAhead(next.spec, gate.stopped);
      return;
    }
  }

  /** Claims a trial that has its permit, unless that was done ahead. */
  claim(inFlight: WorkedTrial, signal: AbortSignal): Promise<Lease> {
    const { lease, trial } = inFlight;
    inFlight.lease = undefined;
    // From now on it is too late to claim it ahead: a second lease would end this one.
    inFlight.isAhead = true;
    return lease ?? this.#parts.claims.acquire(trial, signal);
  }

  /** Gives a trial back that was claimed ahead and has not begun. */
  giveBack(inFlight: WorkedTrial): void {
    const { lease } = inFlight;
    inFlight.lease = undefined;
    lease?.then((held) => held[Symbol.dispose]()).catch(() => undefined);
  }
}
