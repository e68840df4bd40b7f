import type { Clock } from './clock.ts';

/** A signal with a deadline. Disposing stops its timer and its listeners on the parent signals. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** Whether the deadline aborted it. */
  expired(): boolean;
}

/**
 * Starts a signal that aborts when one of `parents` does, with its reason, or `ms` milliseconds from now,
 * with `reason()`. (`AbortSignal.any` with `AbortSignal.timeout` does not work here, because the caller
 * passes the clock.)
 */
export function startDeadline(
  clock: Clock,
  ms: number,
  parents: readonly (AbortSignal | undefined)[],
  reason: () => Error,
): Deadline {
  const controller = new AbortController();
  const timer = new AbortController();
  let expired = false;
  const detach: (() => void)[] = [];

  for (const parent of parents) {
    if (!parent) continue;
    if (parent.aborted) controller.abort(parent.reason);
    const follow = () => controller.abort(parent.reason);
    parent.addEventListener('abort', follow, { once: true });
    detach.push(() => parent.removeEventListener('abort', follow));
  }
  clock.sleep(ms, timer.signal).then(
    () => {
      if (timer.signal.aborted || controller.signal.aborted) return;
      expired = true;
      controller.abort(reason());
    },
    (error) => {
      // Stopping the timer rejects too. Only a failure of the clock itself matters.
      if (!timer.signal.aborted) controller.abort(error);
    },
  );
  return {
    signal: controller.signal,
    expired: () => expired,
    [Symbol.dispose]() {
      timer.abort();
      for (const undo of detach) undo();
    },
  };
}
