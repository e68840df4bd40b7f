import { type Client, createClient } from '../../src/client/client.ts';
import type { ClientOptions } from '../../src/client/options.ts';
import { testClock, testDeadlines } from './test-clock.ts';

export const apiKey = 'sk_live_Zq8%"0123456789';

/** A client whose waits take no time. `random` is 1/2 unless given: every wait is half of its bound. */
export function clientOf(service: { url: string }, options: Partial<ClientOptions> = {}): Client {
  return createClient({
    url: service.url,
    apiKey,
    clock: testClock(),
    random: () => 0.5,
    deadlines: testDeadlines,
    ...options,
  });
}

/** What a promise rejects with. Fails if it does not. */
export async function errorOf(promise: Promise<unknown>): Promise<Error & Record<string, unknown>> {
  const value = await promise.then(
    (value) => ({ value }),
    (error) => error,
  );
  if (value instanceof Error) return value as Error & Record<string, unknown>;
  throw new Error(`expected a rejection, got ${JSON.stringify(value)}`);
}

export const startRequest = {
  suite: { id: 's', name: 'S', prompt: 'p' },
  cases: [{ id: 'c', name: 'C' }],
  variants: [{ model: 'm' }],
  trials: 1,
};

export const reportRequest = {
  id: 'run-1',
  trial: { caseName: 'C', ordinal: 0, taskIndex: 0, events: [], outcome: { passed: true } },
};
