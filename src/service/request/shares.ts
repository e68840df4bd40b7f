import type { Clock } from '../../base/clock.ts';
import { serviceRequests } from '../../bounds/callers.ts';
import { type ApiError, refuse } from '../json-response.ts';

/**
 * Divides the service between its keys, so that no key's requests delay those of others. A key may have only
 * so many requests and bytes in flight. All work is done in steps, and keys take turns: in each turn of the
 * event loop, small steps of one key, as many as take some milliseconds. A large step has a turn of its own,
 * and after it all others have as much time as it took. Few large bodies are read at a time.
 */
export interface Shares {
  /** Takes room for a request. Throws a 429 if its key has too many in flight. */
  enter(key: string): Share;
  /** Resolves when it is the key's turn for a step on a body of so many bytes. */
  turn(key: string, bytes: number): Promise<void>;
  /** Resolves when a large body may be read. Disposing lets the next one be read. */
  room(key: string): Promise<Disposable>;
}

/** The room of one request. Disposing gives it back. */
export interface Share extends Disposable {
  /** Takes room for the bytes of its body, as far as they are known. Throws a 429 if there is none. */
  hold(bytes: number): void;
}

export function createShares(clock: Pick<Clock, 'now'>): Shares {
  const inFlight = new Map<string, { requests: number; bytes: number }>();
  const small = inTurns();
  const large = inTurns();
  const reading = inTurns();
  let rooms: number = serviceRequests.count.read;
  /** How many small steps of a key take some milliseconds, if it is fewer than usual. */
  const slow = new Map<string, number>();
  /** Whether a turn is scheduled. */
  const scheduled = { small: false, large: false };

  function takeSmall(): void {
    const began = clock.now();
    const { key, steps } = small.take((next) => slow.get(next) ?? serviceRequests.count.steps);
    // By then, the steps have been done.
    setImmediate(() => {
      const some = Math.floor((steps * serviceRequests.time.step) / (clock.now() - began));
      if (some < serviceRequests.count.steps) slow.set(key, Math.max(1, some));
      else slow.delete(key);
      scheduled.small = small.isWaiting();
      if (scheduled.small) takeSmall();
    });
  }

  function takeLarge(): void {
    const began = clock.now();
    large.take(() => 1);
    // By then, the step has been done.
    setImmediate(() => {
      scheduled.large = large.isWaiting();
      if (!scheduled.large) return;
      const took = clock.now() - began;
      if (took > 1) setTimeout(takeLarge, took);
      else setImmediate(takeLarge);
    });
  }

  function giveRooms(): void {
    for (; rooms > 0 && reading.isWaiting(); rooms -= 1) reading.take(() => 1);
  }

  return {
    enter(key) {
      const held = inFlight.get(key) ?? { requests: 0, bytes: 0 };
      if (held.requests >= serviceRequests.count.requests)
        throw tooMany(`${held.requests} requests in flight`);
      held.requests += 1;
      inFlight.set(key, held);
      let own = 0;
      return {
        hold(bytes) {
          const others = held.bytes - own;
          if (others + bytes > serviceRequests.bytes.held)
            throw tooMany(`requests of ${others} bytes in flight, and this one has ${bytes}`);
          held.bytes = others + bytes;
          own = bytes;
        },
        [Symbol.dispose]() {
          held.requests -= 1;
          held.bytes -= own;
          if (held.requests === 0) inFlight.delete(key);
        },
      };
    },
    turn: (key, bytes) =>
      new Promise((step) => {
        const isLarge = bytes > serviceRequests.bytes.step;
        (isLarge ? large : small).add(key, step);
        const size = isLarge ? 'large' : 'small';
        if (scheduled[size]) return;
        scheduled[size] = true;
        setImmediate(isLarge ? takeLarge : takeSmall);
      }),
    room: (key) =>
      new Promise((resolve) => {
        let isTaken = true;
        const leave = () => {
          if (isTaken) rooms += 1;
          isTaken = false;
          giveRooms();
        };
        reading.add(key, () => resolve({ [Symbol.dispose]: leave }));
        giveRooms();
      }),
  };
}

/** Steps that wait, by key. The key that had a turn last is the last one. */
function inTurns() {
  const waiting = new Map<string, (() => void)[]>();
  return {
    add(key: string, step: () => void): void {
      const steps = waiting.get(key);
      if (steps) steps.push(step);
      else waiting.set(key, [step]);
    },
    isWaiting: () => waiting.size > 0,
    /** Takes up to `most` steps of the key whose turn it is. One must wait. */
    take(most: (key: string) => number): { key: string; steps: number } {
      const [first] = waiting;
      if (!first) throw new Error('nothing waits for a turn');
      const [key, steps] = first;
      waiting.delete(key);
      const taken = steps.splice(0, most(key));
      for (const step of taken) step();
      if (steps.length > 0) waiting.set(key, steps);
      return { key, steps: taken.length };
    },
  };
}

function tooMany(what: string): ApiError {
  return refuse(429, `The API key has ${what}. Wait until some of them have ended.`, { 'retry-after': '1' });
}
