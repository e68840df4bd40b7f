import type { Clock } from '../base/clock.ts';
import { abortable, startDeadline } from '../base/deadline.ts';
import { infrastructureError, OffsiteError } from '../base/offsite-error.ts';
import { heapLimit } from '../base/parse-json.ts';
import { modelRequests } from '../bounds/sandbox.ts';

/**
 * The memory for the data that passes through the gateway. A trial may hold at most as much as is left free:
 * a single trial gets up to half of the room, two get a third each. So however many trials ask for all they
 * can, there is room left for one that needs little. A request that needs more waits, and meanwhile the
 * gateway does not read from its sender.
 */
export interface Room {
  /** The part of one trial. */
  share(): Share;
  /** Bytes that are held now. */
  readonly held: number;
  readonly limit: number;
}

export interface Share {
  hold(): Hold;
}

/** What one request or answer holds. Disposing releases it. */
export interface Hold extends Disposable {
  readonly bytes: number;
  /**
   * Changes the held bytes to `bytes`. Returns undefined if there is room at once; otherwise a promise that
   * resolves once there is. Rejects with a {@link GatewayRefusal} (503) if there is none in time, or with the
   * signal's reason.
   */
  resize(bytes: number, signal: AbortSignal): Promise<void> | undefined;
}

/** The size of a room in bytes, given this process's heap. */
function roomLimit(): number {
  return Math.min(modelRequests.bytes.held, Math.floor(heapLimit * modelRequests.bytes.heldOfHeap));
}

export function openRoom(clock: Clock, limit = roomLimit()): Room {
  let held = 0;
  /** Each function takes its room and returns true once there is enough. In order of arrival. */
  const waiting = new Set<() => boolean>();
  const wake = () => {
    for (const tryAgain of waiting) if (tryAgain()) waiting.delete(tryAgain);
  };

  function openHold(share: { held: number }): Hold {
    let own = 0;
    let disposed = false;
    const change = (by: number) => {
      own += by;
      share.held += by;
      held += by;
    };
    const grow = (bytes: number): boolean => {
      const by = bytes - own;
      if (disposed) return true;
      if (share.held + by > limit - held - by) return false;
      change(by);
      return true;
    };
    const shrink = (bytes: number) => {
      if (bytes >= own) return;
      change(bytes - own);
      wake();
    };
    const wait = async (bytes: number, signal: AbortSignal) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const tryAgain = () => {
        if (!grow(bytes)) return false;
        resolve();
        return true;
      };
      using time = startDeadline(clock, modelRequests.time.roomWait, [signal], () => noRoom(limit));
      waiting.add(tryAgain);
      try {
        await abortable(promise, time.signal);
      } finally {
        waiting.delete(tryAgain);
      }
    };
    return {
      get bytes() {
        return own;
      },
      resize(bytes, signal) {
        if (bytes <= own) {
          shrink(bytes);
          return undefined;
        }
        return grow(bytes) ? undefined : wait(bytes, signal);
      },
      [Symbol.dispose]() {
        if (disposed) return;
        shrink(0);
        disposed = true;
      },
    };
  }

  return {
    limit,
    get held() {
      return held;
    },
    share() {
      const share = { held: 0 };
      return { hold: () => openHold(share) };
    },
  };
}

function noRoom(limit: number): GatewayRefusal {
  return new GatewayRefusal(
    503,
    'NO_ROOM',
    `requests and answers have filled all ${Math.round(limit / 2 ** 20)} MiB ` +
      `for ${modelRequests.time.roomWait / 1000} s`,
    { hint: 'Ask for less at a time, run fewer trials at a time, or give Node a larger heap.' },
  );
}

/**
 * Why a request is not forwarded, or its answer not passed on. Has the status and code for the wire's own
 * error.
 */
export class GatewayRefusal extends OffsiteError {
  readonly status: number;

  /** `code` is upper-case, as in every error; wires that have codes show it in lower case. */
  constructor(
    status: number,
    code: string,
    message: string,
    options: { hint?: string; cause?: unknown } = {},
  ) {
    super(message, { code, kind: status < 500 ? 'input' : 'infrastructure', ...options });
    this.status = status;
  }
}

/** The reason when a request of the sandbox ends because its client disconnects. */
export function clientGone(): OffsiteError {
  return infrastructureError('CLIENT_GONE', 'its client ended it');
}
