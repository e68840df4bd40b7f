import type { Clock } from '../../base/clock.ts';
import { pause } from '../../base/deadline.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { ConfigRevisions } from '../config-revision.ts';
import type { SomeEngines } from '../engines/check.ts';

/** Milliseconds until a workplace that cannot be opened is tried again. */
const againMs = 10_000;

/** What trials run on. */
export interface Workplace extends SomeEngines {
  revisions: ConfigRevisions;
  /** The host's, for install and prepare. */
  extraCertificates: Buffer | undefined;
}

/** Opens a workplace when it is first needed, once. */
export class LazyWorkplace {
  readonly #open: () => Promise<Workplace>;
  #opening: Promise<Workplace> | undefined;

  /** @param open called again after it threw */
  constructor(open: () => Promise<Workplace>) {
    this.#open = open;
  }

  /** Throws an OffsiteError if trials cannot run here, for example because there is no engine. */
  get(): Promise<Workplace> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  /**
   * Tries until it is open. Resolves with undefined if the signal aborts.
   *
   * @param unable called with each new reason why it cannot be opened
   */
  async whenPossible(
    { clock, unable }: { clock: Clock; unable(reason: string): void },
    signal: AbortSignal,
  ): Promise<Workplace | undefined> {
    for (let lastReason: string | undefined; !signal.aborted; ) {
      try {
        return await this.get();
      } catch (error) {
        if (signal.aborted) return undefined;
        if (!(error instanceof OffsiteError)) throw error;
        const reason = messageOf(error);
        if (reason !== lastReason) unable(reason);
        lastReason = reason;
      }
      await pause(clock, againMs, signal);
    }
    return undefined;
  }
}
