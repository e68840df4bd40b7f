import { type Clock, longestSince, type Moment, momentOf } from '../base/clock.ts';
import { infrastructureError, messageOf, OffsiteError } from '../base/offsite-error.ts';
import { claimAnswers, serviceDescription } from '../bounds/service.ts';
import type { Client } from '../client/client.ts';
import type { Offer } from '../client/offer.ts';
import { Conflict, NotFound } from '../client/refusal.ts';
import { restoredTag } from '../contract/errors.ts';
import type { StoredTrial } from '../ledger/trial-rows.ts';
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

interface LeaseParts {
  clock: Clock;
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
function keptLease({ clock, leaseMs, first, renew, release, isDown }: LeaseParts): Lease {
  const lost = new AbortController();
  /** Aborted when the lease is no longer renewed. */
  const ended = new AbortController();
  let number = first?.number;
  /** When the last successful renewal was sent. */
  let renewedAt = first?.sentAt;
  let isFailing = first === undefined;
  const untilNextMs = () => (isFailing ? Math.min(retryMs, leaseMs / 3) : leaseMs / 3);
  /** Never rejects. */
  const renewNow = async (signal: AbortSignal) => {
    const sentAt = momentOf(clock);
    try {
      number = await renew(number, signal);
      renewedAt = sentAt;
      isFailing = false;
    } catch (error) {
      if (signal.aborted) return;
      // Only the service's word ends a lease. While it cannot be asked, or was just restored, nobody else
      // gets the trial either.
      if (error instanceof Conflict && error.tag !== restoredTag) lost.abort(notClaimed(error));
      isFailing = true;
    }
  };
  const step = async (signal: AbortSignal) => {
    await renewNow(signal);
    return untilNextMs();
  };
  const loop = new Loop({ name: 'lease', clock, firstMs: untilNextMs(), step });
  // It never rejects, because its step does not.
  void loop.run(AbortSignal.any([ended.signal, lost.signal]));
  return {
    get number() {
      return number;
    },
    lost: lost.signal,
    async confirm(signal) {
      const mayHaveExpired = !renewedAt || longestSince(renewedAt, clock) >= leaseMs;
      if (mayHaveExpired && !lost.signal.aborted && !isDown()) await renewNow(signal);
      lost.signal.throwIfAborted();
    },
    settle: () => ended.abort(),
    [Symbol.dispose]() {
      if (ended.signal.aborted) return;
      ended.abort();
      if (number !== undefined && !lost.signal.aborted) release(number);
    },
  };
}

type WhyNotClaimed =
  /** The trial has ended, or can never be claimed. */
  | { kind: 'ended' }
  /** Another agent has it. It may be free in the given milliseconds. */
  | { kind: 'held'; waitMs: number }
  /**
   * The service could not be asked, or refused to answer. With `waitMs`, no trial is claimed for so many
   * milliseconds.
   */
  | { kind: 'unasked'; waitMs?: number };

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
function notClaimed(refusal: Conflict): NotClaimed {
  const { retryAfterMs, said } = refusal;
  if (retryAfterMs === undefined) return new NotClaimed({ kind: 'ended' }, said, refusal);
  // The other agent may end the trial earlier, or renew its lease.
  const waitMs = Math.max(shortestWaitMs, Math.min(retryAfterMs, claimAnswers.time.held));
  return new NotClaimed({ kind: 'held', waitMs }, said, refusal);
}

/** Whether the service says that it has no such run. A proxy may answer 404 for another reason. */
export function isGone(error: unknown): boolean {
  return error instanceof NotFound && error.tag === 'NotFound';
}

/** A trial as a service knows it. Its `origin` decides what to do while the service cannot be asked. */
export type ClaimedTrial = Pick<StoredTrial, 'runId' | 'ordinal' | 'origin'>;

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
      const waitMs = offer === 'unreachable' ? claimAnswers.time.down : this.#downMs;
      const why = { kind: 'unasked', ...(waitMs > 0 && { waitMs }) } as const;
      const remedy = isGone(error)
        ? `; to end it here: offsite data abandon ${trial.runId} --unreported`
        : '';
      throw new NotClaimed(why, `it cannot be claimed now: ${messageOf(error)}${remedy}`, error);
    }
  }

  /** Waits, for a few seconds, until the trials that are not settled are given back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#releases);
  }

  get #isDown(): boolean {
    return this.#downMs > 0;
  }

  /** Milliseconds until the service is asked again after a call failed. */
  get #downMs(): number {
    return this.#down === undefined ? 0 : Math.max(0, this.#down.until - this.#parts.clock.monotonic());
  }

  async #firstClaim(trial: ClaimedTrial, offer: Offer, signal: AbortSignal) {
    if (this.#down && this.#isDown) throw answeredNoOther(this.#down.error);
    if (offer === 'unreachable') throw noAnswer();
    const sentAt = momentOf(this.#parts.clock);
    return { number: await this.#ask(trial, undefined, signal), sentAt };
  }

  #lease(trial: ClaimedTrial, first: LeaseParts['first']): Lease {
    return keptLease({
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
    const { leaseMs, clock } = this.#parts;
    try {
      const { attempt } = await this.#call(trial, number, leaseMs, {
        signal,
        deadlineMs: claimAnswers.time.call,
      });
      // The number goes into the ledger and into requests.
      if (!Number.isSafeInteger(attempt) || attempt < 1) throw unusable(attempt);
      this.#down = undefined;
      this.#grantedAt = clock.monotonic();
      return attempt;
    } catch (error) {
      if (!signal.aborted && error instanceof OffsiteError && error.kind === 'infrastructure')
        this.#down = { error, until: clock.monotonic() + claimAnswers.time.down };
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
    const { clock } = this.#parts;
    if (this.#known && this.#known.until > clock.monotonic()) return Promise.resolve(this.#known.offer);
    this.#asking ??= this.#askOffer().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #askOffer(): Promise<Offer> {
    const { client, clock } = this.#parts;
    const said = await client.offers('evals.claimTrial');
    // A proxy answers for a service that is being replaced, usually with 404.
    const grantedMs = clock.monotonic() - this.#grantedAt;
    const isProxy = said !== 'offered' && grantedMs < serviceDescription.time.absent;
    const offer = isProxy ? 'unreachable' : said;
    this.#known = { offer, until: clock.monotonic() + validMs[offer] };
    return offer;
  }
}

/** A trial that was not asked for must not look as if its own claim had failed. */
function answeredNoOther(error: unknown): OffsiteError {
  const message = `the service did not answer the claim of another trial: ${messageOf(error)}`;
  return infrastructureError('NO_SERVICE', message, { cause: error });
}

function noAnswer(): OffsiteError {
  return infrastructureError('NO_SERVICE', 'the service does not answer');
}

function unusable(attempt: number): OffsiteError {
  const message = `the service gave a lease the number ${attempt}`;
  return infrastructureError('LEASE_UNUSABLE', message);
}

/** Milliseconds until a service is asked again what it offers. */
const validMs: Record<Offer, number> = {
  offered: Number.POSITIVE_INFINITY,
  absent: serviceDescription.time.absent,
  unclear: serviceDescription.time.unclear,
  unreachable: claimAnswers.time.down,
};
