import { hash, randomUUID } from 'node:crypto';
import { openSync, readFileSync, readlinkSync, readSync } from 'node:fs';

/** The clock that code gets from its caller, so that a test can pass another one. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Milliseconds that nobody can set. They stand still while the machine sleeps. */
  monotonic(): number;
  /** A clock that nobody can set, if there is one. Only times of the same `of` are compared. */
  steady?(): SteadyTime;
  /** Resolves after `ms` milliseconds. Rejects with the signal's reason if it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

interface SteadyTime {
  /** Which clock: that of one boot of a machine, or of one process. */
  of: string;
  /** Milliseconds since something that `of` fixes. */
  at: number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  steady: steadyTime,
  // The timer of `node:timers/promises` makes an error, with its stack, for each sleep that is ended.
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const end = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', end);
        resolve();
      }, ms);
      signal?.addEventListener('abort', end, { once: true });
    }),
};

/** Linux counts from the boot, also while it sleeps, so that a later process continues to count. */
function steadyTime(): SteadyTime {
  if (boot === undefined) return { of: thisProcess, at: Math.round(performance.now()) };
  const text = Buffer.alloc(64);
  const seconds = Number(text.toString('latin1', 0, readSync(boot.uptime, text, 0, 64, 0)).split(' ')[0]);
  return { of: boot.of, at: Math.round(seconds * 1000) };
}

const thisProcess = `process ${randomUUID()}`;

/** Of the machine, or of a container that has a clock of its own. */
const boot = bootOfLinux();

/** The file stays open, so that the clock also goes where no more files may be opened. */
function bootOfLinux(): { of: string; uptime: number } | undefined {
  try {
    const id = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1');
    const ofContainer = readlinkSync('/proc/self/ns/time');
    const of = `boot ${hash('sha256', id + ofContainer).slice(0, 16)}`;
    return { of, uptime: openSync('/proc/uptime', 'r') };
  } catch {
    return undefined;
  }
}

/**
 * A clock that begins with the present time of `clock` and then only passes, so that the differences of its
 * times are durations, even if somebody sets the machine's clock meanwhile.
 */
export function steadyClock(clock: Clock): Clock {
  const begun = momentOf(clock);
  return {
    now: () => begun.clock + Math.round(clock.monotonic() - begun.monotonic),
    monotonic: () => clock.monotonic(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
  };
}

/** A moment by both clocks: a machine that sleeps stops the monotonic one, and the other may be set. */
export interface Moment {
  monotonic: number;
  clock: number;
}

export function momentOf(clock: Clock): Moment {
  return { monotonic: clock.monotonic(), clock: clock.now() };
}

/** Milliseconds since a moment, by the clock that says more. */
export function longestSince(at: Moment, clock: Clock): number {
  return Math.max(clock.monotonic() - at.monotonic, clock.now() - at.clock);
}

export interface BackoffLimits {
  /** Milliseconds: the longest first wait. It doubles with each failure in a row. */
  first: number;
  /** Milliseconds: the longest wait of all. */
  longest: number;
}

/**
 * Milliseconds to wait after this many failures in a row (from 1). Uses full jitter, anything between zero
 * and the bound: clients that failed together do not come back together, and on average come back soonest.
 *
 * @param random returns a number from 0 (inclusive) to 1 (exclusive), or is {@link noJitter}
 */
export function backoff(failures: number, { first, longest }: BackoffLimits, random: () => number): number {
  return Math.round(random() * Math.min(longest, first * 2 ** Math.min(failures - 1, 30)));
}

/** For waits that must add up to a known time: each is as long as its bound. */
export const noJitter = () => 1;
