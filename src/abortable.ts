/**
 * Settles like `promise`, or rejects with the signal's reason if it aborts first. The work behind the promise
 * continues.
 */
export async function abortable<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
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

/** Rejects with the signal's reason when it aborts. Never settles before. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return abortable(new Promise<never>(() => undefined), signal);
}
