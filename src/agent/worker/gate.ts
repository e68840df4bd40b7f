import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { WorkedTrial } from './flight.ts';
import type { WorkerParts } from './worker-parts.ts';

/** Milliseconds without new trials after a trial could not be finished, for example on a full disk. */
const blockedMs = 15_000;

export interface GateParts extends Pick<WorkerParts, 'clock' | 'observe' | 'onFailure'> {
  /** Called when the gate is held or let go. */
  changed(): void;
}

/** Decides whether a worker may start trials. It is held by a caller, or blocked by a trial's failure. */
export class Gate {
  readonly #parts: GateParts;
  #admitted = new AbortController();
  readonly #stopped = new AbortController();
  #blocked: { reason: string; until: number } | undefined;
  #failure: { error: unknown } | undefined;

  constructor(parts: GateParts) {
    this.#parts = parts;
  }

  /** Aborts to queue again the trials that have no permit yet. Each {@link resume} makes a new signal. */
  get admitted(): AbortSignal {
    return this.#admitted.signal;
  }

  /** Aborts to end the running trials. */
  get stopped(): AbortSignal {
    return this.#stopped.signal;
  }

  get isHeld(): boolean {
    return this.admitted.aborted;
  }

  /** Why no trial starts although some are queued. */
  get blocked(): string | undefined {
    return this.#blocked?.reason;
  }

  /** Why the work ended, if `onFailure` is `stop`. */
  get failure(): { error: unknown } | undefined {
    return this.#failure;
  }

  hold(): void {
    const message = 'the worker starts no trials now';
    this.#admitted.abort(new OffsiteError(message, { code: 'HELD', kind: 'infrastructure' }));
    this.#parts.changed();
  }

  resume(): void {
    if (this.isHeld) this.#admitted = new AbortController();
    this.#parts.changed();
  }

  stop(reason: unknown): void {
    this.hold();
    this.#stopped.abort(reason);
  }

  /** Lets no trial start for now, or at all if `onFailure` is `stop`, because one could not be finished. */
  block({ trial }: WorkedTrial, error: unknown): void {
    const { onFailure, observe, clock } = this.#parts;
    const reason = messageOf(error);
    observe({ kind: 'put-back', trial, error, isNews: this.blocked !== reason });
    if (onFailure === 'pause') {
      this.#blocked = { reason, until: clock.monotonic() + blockedMs };
      return;
    }
    this.#failure ??= { error };
    this.hold();
  }

  /**
   * Ends a block whose time is over. Returns the milliseconds that a block still lasts, 0 if there is none.
   */
  unblock(): number {
    const ms = (this.#blocked?.until ?? 0) - this.#parts.clock.monotonic();
    if (this.#blocked && ms > 0) return ms;
    this.#blocked = undefined;
    return 0;
  }
}
