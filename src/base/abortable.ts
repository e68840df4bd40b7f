import type { Clock } from './clock.ts';

/**
 * Settles like `promise`, or rejects with the signal's reason if it aborts first. The work behind the promise
 * continues.
 */
export async function abortable<Value>(
  promise: Promise<Value>,
  signal: AbortSignal | undefined,
): Promise<Value> {
  if (signal === undefined) return await promise;
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Resolves after the given milliseconds, or as soon as the signal aborts. */
export async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  try {
    await clock.sleep(ms, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Rejects with the signal's reason when it aborts. Never settles before. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return abortable(new Promise<never>(() => undefined), signal);
}
