import type { Clock } from '../../base/clock.ts';
import { pause } from '../../base/deadline.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { platformLock, servingLock } from '../../ledger/platform.ts';

/** Milliseconds between two tries to take the lock. */
const tryMs = 1_000;

/** Milliseconds between two tries to take a lock that another process holds only to test it. */
const lookedAtMs = 20;

export interface TurnParts {
  ledger: Ledger;
  clock: Clock;
  /** Called once if another process has the lock. */
  waits(): void;
}

/**
 * Takes the data folder's lock for running platform batches, as a process that serves. Waits while another
 * process has it. Resolves with undefined if the signal aborts.
 */
export async function turnToServe(parts: TurnParts, signal: AbortSignal): Promise<Disposable | undefined> {
  const { ledger, clock } = parts;
  const platform = await nextTurn(parts, signal, () => false);
  if (!platform) return undefined;
  using taken = new DisposableStack();
  taken.use(platform);
  // Only the server whose turn it is keeps this lock. A command holds it for a moment, to test whether a
  // server runs.
  for (; !signal.aborted; await pause(clock, lookedAtMs, signal)) {
    const serving = ledger.takeLock(servingLock);
    if (!serving) continue;
    taken.use(serving);
    return taken.move();
  }
  return undefined;
}

/**
 * Takes the lock for one command, after other commands that have it. Resolves with undefined if a server has
 * it: then the server runs all platform batches. Rejects if the signal aborts.
 */
export async function turnForCommand(parts: TurnParts, signal: AbortSignal): Promise<Disposable | undefined> {
  const turn = await nextTurn(parts, signal, () => isServed(parts.ledger));
  signal.throwIfAborted();
  return turn;
}

/** Whether a server runs the platform batches of the data folder. */
function isServed(ledger: Ledger): boolean {
  const lock = ledger.takeLock(servingLock);
  lock?.[Symbol.dispose]();
  return lock === undefined;
}

async function nextTurn(
  { ledger, clock, waits }: TurnParts,
  signal: AbortSignal,
  isOver: () => boolean,
): Promise<Disposable | undefined> {
  for (let isAnnounced = false; !signal.aborted; isAnnounced = true) {
    const lock = ledger.takeLock(platformLock);
    if (lock) return lock;
    if (isOver()) return undefined;
    if (!isAnnounced) waits();
    await pause(clock, tryMs, signal);
  }
  return undefined;
}
