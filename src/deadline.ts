import type { Clock } from './clock.ts';

/** A signal with a deadline. Disposing ends its timer and lets go of the signals it follows. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** Whether the deadline was what aborted it. */
  expired(): boolean;
}

/**
 * A signal that aborts when one of `parents` does, with its reason, or `ms` milliseconds from now, with
 * `reason()`. (`AbortSignal.any` with `AbortSignal.timeout` would do but for the clock, which is the
 * caller's.)
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
      // Stopping the timer rejects too; only a clock that fails on its own is news.
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
