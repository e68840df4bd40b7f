import { type Admission, sizeOfTrial } from '../admission.ts';
import { type Claims, type Lease, NotClaimed } from '../claims.ts';
import type { Flight, WorkedTrial } from './flight.ts';
import type { Gate } from './gate.ts';

export interface TrialClaimsParts {
  flight: Flight;
  admission: Pick<Admission, 'next' | 'isWaiting'>;
  claims: Claims;
  gate: Gate;
}

/**
 * Claims a worker's trials. The trial that gets the next permit is claimed ahead, while another trial works,
 * and its sandbox is started, unless the trial has services. Each other trial is claimed when it has its
 * permit. At most one trial is ahead at a time.
 */
export class TrialClaims {
  readonly #parts: TrialClaimsParts;
  /** The trial that is ahead, until it is claimed with its permit or leaves. */
  #one: WorkedTrial | undefined;

  constructor(parts: TrialClaimsParts) {
    this.#parts = parts;
  }

  /**
   * Claims the trial that gets the next permit, and starts its sandbox. If another trial is ahead and must
   * wait longer, it gives up its sandbox. A trial that cannot be claimed leaves the flight, and the one after
   * it is tried. Never rejects.
   */
  async claimNext(): Promise<void> {
    const { flight, admission, claims, gate } = this.#parts;
    for (;;) {
      const { next: applicant } = admission;
      const next = flight.trials.find(({ spec }) => spec === applicant?.spec);
      if (!next || next.triedAhead || gate.isHeld) return;
      if (this.#one) {
        // If that trial has its permit, it begins within milliseconds, and this is called again.
        if (!admission.isWaiting(this.#one.spec)) return;
        this.giveBack(this.#one);
      }
      this.#one = next;
      next.triedAhead = true;
      const lease = claims.acquire(next.trial, gate.stopped);
      next.lease = lease;
      try {
        await lease;
      } catch (error) {
        // If the trial got its permit meanwhile, it waits for this lease too and meets the same error.
        if (next.lease !== lease) return;
        next.lease = undefined;
        this.#leaves(next);
        if (!(error instanceof NotClaimed)) return;
        next.canceling.abort(error);
        continue;
      }
      // Services need memory and processors, for which the trial needs its permit.
      const hasServices = sizeOfTrial(next.spec).services.memory > 0;
      if (next.lease === lease && !hasServices) next.at?.context.sandboxes.start(next.spec, gate.stopped);
      return;
    }
  }

  /** Claims a trial that has its permit, unless that was done ahead. */
  claim(inFlight: WorkedTrial, signal: AbortSignal): Promise<Lease> {
    const { lease, trial } = inFlight;
    inFlight.lease = undefined;
    // From now on it is too late to claim it ahead: a second lease would end this one.
    inFlight.triedAhead = true;
    this.#leaves(inFlight);
    return lease ?? this.#parts.claims.acquire(trial, signal);
  }

  /**
   * Gives back the trial that is ahead, with its sandbox, because it is not known when the trial begins. The
   * trial may be ahead again later.
   */
  giveBackWaiting(): void {
    if (this.#one) this.giveBack(this.#one);
  }

  /** Gives back a trial that was claimed ahead and has not begun, and the sandbox that was started for it. */
  giveBack(inFlight: WorkedTrial): void {
    const { lease, spec, at } = inFlight;
    inFlight.lease = undefined;
    lease?.then((held) => held[Symbol.dispose]()).catch(() => undefined);
    at?.context.sandboxes.forget(spec);
    if (this.#one !== inFlight) return;
    inFlight.triedAhead = false;
    this.#leaves(inFlight);
  }

  #leaves(inFlight: WorkedTrial): void {
    if (this.#one === inFlight) this.#one = undefined;
  }
}
