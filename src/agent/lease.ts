import type { Clock } from '../base/clock.ts';
import { OffsiteError } from '../base/offsite-error.ts';
import { claimAnswers } from '../bounds/service.ts';
import { Conflict } from '../client/refusal.ts';
import { Loop } from './loop.ts';

/** The right to run one trial. Disposing ends the right: the trial is given back unless it was settled. */
export interface Lease extends Disposable {
  /** The number that the service gave; undefined if the service gives none, or could not be asked yet. */
  readonly number: number | undefined;
  /** Aborts with a `NotClaimed` when the service has given the trial to another agent. */
  readonly lost: AbortSignal;
  /**
   * Renews the lease if it may have expired unnoticed, as on a machine that slept. Rejects with `NotClaimed`
   * if it is lost. Also resolves if the service cannot be asked, or the signal aborts: the service then
   * decides once it gets the report.
   */
  confirm(signal: AbortSignal): Promise<void>;
  /** Ends the renewals, but keeps the trial for its report. Call this once the result is on disk. */
  settle(): void;
}

/** Milliseconds until the next try after a renewal failed, if that is earlier than the next renewal. */
const retryMs = 5_000;

/** A moment by both clocks: a machine that sleeps stops the monotonic one, and the other may be set. */
interface Moment {
  monotonic: number;
  clock: number;
}

export interface LeaseParts {
  clock: Clock;
  /** Milliseconds, never set back. */
  monotonic: () => number;
  leaseMs: number;
  /** The number that the service gave, and when it was asked; undefined if it could not be asked. */
  first: { number: number; sentAt: Moment } | undefined;
  /** Renews the lease, or claims the trial. Resolves with its number, or undefined if there are no claims. */
  renew(number: number | undefined, signal: AbortSignal): Promise<number | undefined>;
  release(number: number): void;
  /**
   * Whether the service could not be asked a moment ago. If so, `confirm` does not ask it again before a
   * result is stored.
   */
  isDown(): boolean;
}

/** For a trial that nobody else can run. */
export const noLease = (): Lease => ({
  number: undefined,
  lost: new AbortController().signal,
  confirm: async () => undefined,
  settle: () => undefined,
  [Symbol.dispose]: () => undefined,
});

/** A lease that is renewed after each third of its duration. */
export class KeptLease implements Lease {
  readonly #parts: LeaseParts;
  readonly #lost = new AbortController();
  /** Aborted when the lease is no longer renewed. */
  readonly #ended = new AbortController();
  #number: number | undefined;
  /** When the last successful renewal was sent. */
  #renewedAt: Moment | undefined;
  #isFailing: boolean;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
    this.#number = parts.first?.number;
    this.#renewedAt = parts.first?.sentAt;
    this.#isFailing = parts.first === undefined;
    const loop = new Loop({
      name: 'lease',
      clock: parts.clock,
      firstMs: this.#waitMs,
      step: async (signal) => {
        await this.#renew(signal);
        return this.#waitMs;
      },
    });
    // It never rejects, because its step does not.
    void loop.run(AbortSignal.any([this.#ended.signal, this.#lost.signal]));
  }

  get number(): number | undefined {
    return this.#number;
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  async confirm(signal: AbortSignal): Promise<void> {
    if (this.#mayHaveExpired && !this.lost.aborted && !this.#parts.isDown()) await this.#renew(signal);
    this.lost.throwIfAborted();
  }

  settle(): void {
    this.#ended.abort();
  }

  [Symbol.dispose](): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    if (this.#number !== undefined && !this.lost.aborted) this.#parts.release(this.#number);
  }

  get #mayHaveExpired(): boolean {
    const { monotonic, clock, leaseMs } = this.#parts;
    const at = this.#renewedAt;
    return !at || Math.max(monotonic() - at.monotonic, clock.now() - at.clock) >= leaseMs;
  }

  /** Milliseconds until the next renewal. */
  get #waitMs(): number {
    const { leaseMs } = this.#parts;
    return this.#isFailing ? Math.min(retryMs, leaseMs / 3) : leaseMs / 3;
  }

  /** Never rejects. */
  async #renew(signal: AbortSignal): Promise<void> {
    const { monotonic, clock, renew } = this.#parts;
    const sentAt = { monotonic: monotonic(), clock: clock.now() };
    try {
      this.#number = await renew(this.#number, signal);
      this.#renewedAt = sentAt;
      this.#isFailing = false;
    } catch (error) {
      if (signal.aborted) return;
      // Only the service's word ends a lease. While it cannot be asked, nobody else gets the trial either.
      if (error instanceof Conflict) this.#lost.abort(notClaimed(error));
      this.#isFailing = true;
    }
  }
}

export type WhyNotClaimed =
  /** The trial has ended, or can never be claimed. */
  | { kind: 'ended' }
  /** Another agent has it. It may be free in the given milliseconds. */
  | { kind: 'held'; waitMs: number }
  /** The service could not be asked, or refused to answer. */
  | { kind: 'unasked' };

/** This agent must not run a trial now. */
export class NotClaimed extends OffsiteError {
  override readonly name = 'NotClaimed';
  readonly why: WhyNotClaimed;

  constructor(why: WhyNotClaimed, message: string, cause: unknown) {
    super(message, { code: 'NOT_CLAIMED', kind: 'infrastructure', cause });
    this.why = why;
  }
}

/** The fewest milliseconds until a trial is claimed again, whatever a service says. */
const shortestWaitMs = 1_000;

/** What a service's refusal of a claim means: `Retry-After` says when the trial may be free. */
export function notClaimed(refusal: Conflict): NotClaimed {
  const { retryAfterMs, said } = refusal;
  if (retryAfterMs === undefined) return new NotClaimed({ kind: 'ended' }, said, refusal);
  // The other agent may end the trial earlier, or renew its lease.
  const waitMs = Math.max(shortestWaitMs, Math.min(retryAfterMs, claimAnswers.time.held));
  return new NotClaimed({ kind: 'held', waitMs }, said, refusal);
}
