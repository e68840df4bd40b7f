import type { Clock } from '../base/clock.ts';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { claimAnswers, serviceDescription } from '../bounds/service.ts';
import type { Client } from '../client/client.ts';
import type { Offer } from '../client/offer.ts';
import { Conflict, NotFound } from '../client/refusal.ts';
import type { QueuedTrial } from '../ledger/queue.ts';
import { KeptLease, type Lease, type LeaseParts, NotClaimed, noLease, notClaimed } from './lease.ts';

/** A trial as a service knows it. Its `origin` decides what to do while the service cannot be asked. */
export type ClaimedTrial = Pick<QueuedTrial, 'runId' | 'ordinal' | 'origin'>;

/** Keeps agents with data folders of their own from running the same trial. */
export interface Claims {
  /**
   * Claims a trial; renewed until the lease is disposed or settled. Rejects with {@link NotClaimed} if the
   * trial must not run now, and if the signal aborts.
   */
  acquire(trial: ClaimedTrial, signal: AbortSignal): Promise<Lease>;
}

/** For a service that has no claims. */
export const noClaims: Claims = { acquire: async () => noLease() };

export interface ClaimsParts {
  client: Pick<Client, 'call' | 'offers'>;
  /** The name by which services know this agent. */
  agent: string;
  clock: Clock;
  /** Milliseconds, never set back. */
  monotonic: () => number;
  /** Milliseconds that a lease holds unless it is renewed. */
  leaseMs: number;
}

/**
 * Claims trials at one service with `evals.claimTrial`, if its OpenAPI document lists that; otherwise every
 * trial may run. While the service cannot be asked, trials that were found wait, because other agents have
 * found them too. Trials that this agent planned run, and are claimed as soon as the service answers.
 */
export class ServiceClaims implements Claims, AsyncDisposable {
  readonly #parts: ClaimsParts;
  /** What the service offers, and until when (monotonic) that is valid. */
  #known: { offer: Offer; until: number } | undefined;
  #asking: Promise<Offer> | undefined;
  /** When the service granted or renewed a lease last (monotonic). */
  #grantedAt = Number.NEGATIVE_INFINITY;
  /** Why the last call failed, and until when (monotonic) no trial waits for another call. */
  #down: { error: unknown; until: number } | undefined;
  readonly #releases = new Set<Promise<unknown>>();

  constructor(parts: ClaimsParts) {
    this.#parts = parts;
  }

  async acquire(trial: ClaimedTrial, signal: AbortSignal): Promise<Lease> {
    const offer = await this.#offer();
    signal.throwIfAborted();
    if (offer === 'absent' || offer === 'unclear') return noLease();
    try {
      return this.#lease(trial, await this.#firstClaim(trial, offer, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Conflict) throw notClaimed(error);
      if (error instanceof NotFound && (await this.#offer()) === 'absent') return noLease();
      if (trial.origin === 'planned') return this.#lease(trial, undefined);
      throw new NotClaimed({ kind: 'unasked' }, `it cannot be claimed now: ${messageOf(error)}`, error);
    }
  }

  /** Waits, for a few seconds, until the trials that are not settled are given back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#releases);
  }

  get #isDown(): boolean {
    return this.#down !== undefined && this.#down.until > this.#parts.monotonic();
  }

  async #firstClaim(trial: ClaimedTrial, offer: Offer, signal: AbortSignal) {
    const { monotonic } = this.#parts;
    if (this.#down && this.#isDown) throw this.#down.error;
    if (offer === 'unreachable') throw noAnswer();
    const sentAt = { monotonic: monotonic(), clock: this.#parts.clock.now() };
    return { number: await this.#ask(trial, undefined, signal), sentAt };
  }

  #lease(trial: ClaimedTrial, first: LeaseParts['first']): Lease {
    return new KeptLease({
      ...this.#parts,
      first,
      renew: async (number, signal) => {
        const offer = number === undefined ? await this.#offer() : 'offered';
        if (offer === 'unreachable') throw noAnswer();
        // A service that was away when the trial started may turn out to have no claims.
        return offer === 'offered' ? this.#renew(trial, number, signal) : undefined;
      },
      isDown: () => this.#isDown,
      release: (number) => this.#release(trial, number),
    });
  }

  /**
   * Renews a lease. If a newer one holds, that may be of our own claim, which was late on its way: only its
   * agent gets another lease meanwhile.
   */
  async #renew(trial: ClaimedTrial, number: number | undefined, signal: AbortSignal): Promise<number> {
    try {
      return await this.#ask(trial, number, signal);
    } catch (error) {
      const isHeld = error instanceof Conflict && (error.retryAfterMs ?? 0) > 0;
      if (number === undefined || !isHeld) throw error;
      return this.#ask(trial, undefined, signal);
    }
  }

  /** Claims a trial, or renews the lease with a number. Resolves with the lease's number. */
  async #ask(trial: ClaimedTrial, number: number | undefined, signal: AbortSignal): Promise<number> {
    const { leaseMs, monotonic } = this.#parts;
    try {
      const { attempt } = await this.#call(trial, number, leaseMs, {
        signal,
        deadlineMs: claimAnswers.time.call,
      });
      // The number goes into the ledger and into requests.
      if (!Number.isSafeInteger(attempt) || attempt < 1) throw unusable(attempt);
      this.#down = undefined;
      this.#grantedAt = monotonic();
      return attempt;
    } catch (error) {
      if (!signal.aborted && error instanceof OffsiteError && error.kind === 'infrastructure')
        this.#down = { error, until: monotonic() + claimAnswers.time.down };
      if (error instanceof NotFound) this.#known = undefined;
      throw error;
    }
  }

  /** Gives a trial back in the background. If that fails, the lease expires. */
  #release(trial: ClaimedTrial, number: number): void {
    const release = this.#call(trial, number, 0, { deadlineMs: claimAnswers.time.release })
      .catch(() => undefined)
      .finally(() => this.#releases.delete(release));
    this.#releases.add(release);
  }

  #call(
    { runId: id, ordinal }: ClaimedTrial,
    number: number | undefined,
    leaseMs: number,
    options: { signal?: AbortSignal; deadlineMs: number },
  ) {
    const { client, agent } = this.#parts;
    const renewed = number !== undefined && { attempt: number };
    const request = { id, ordinal, agent, seconds: Math.ceil(leaseMs / 1000), ...renewed };
    return client.call('evals.claimTrial', request, options);
  }

  /** Whether the service offers claims; asked again from time to time if it does not. */
  #offer(): Promise<Offer> {
    const { monotonic } = this.#parts;
    if (this.#known && this.#known.until > monotonic()) return Promise.resolve(this.#known.offer);
    this.#asking ??= this.#askOffer().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #askOffer(): Promise<Offer> {
    const { client, monotonic } = this.#parts;
    const said = await client.offers('evals.claimTrial');
    // A proxy answers for a service that is being replaced, usually with 404.
    const isProxy = said !== 'offered' && monotonic() - this.#grantedAt < serviceDescription.time.absent;
    const offer = isProxy ? 'unreachable' : said;
    this.#known = { offer, until: monotonic() + validMs[offer] };
    return offer;
  }
}

function noAnswer(): OffsiteError {
  return new OffsiteError('the service does not answer', { code: 'NO_SERVICE', kind: 'infrastructure' });
}

function unusable(attempt: number): OffsiteError {
  const message = `the service gave a lease the number ${attempt}`;
  return new OffsiteError(message, { code: 'LEASE_UNUSABLE', kind: 'infrastructure' });
}

/** Milliseconds until a service is asked again what it offers. */
const validMs: Record<Offer, number> = {
  offered: Number.POSITIVE_INFINITY,
  absent: serviceDescription.time.absent,
  unclear: serviceDescription.time.unclear,
  unreachable: claimAnswers.time.down,
};
