import { containersOnce } from './containers.ts';
import { type Running, start } from './offsite.ts';
import type { Place } from './place.ts';

export const cases = [
  { id: 'quick', verify: 'true', variables: { act: 'true' } },
  { id: 'slow', verify: 'true', variables: { act: 'sleep 600' } },
];

/**
 * Starts a batch and waits until its quick trial is reported and its slow one is at work; returns the agent's
 * instance.
 */
export async function inTheMiddle(
  place: Place,
  options: string[] = [],
): Promise<{ running: Running; instance: string }> {
  const running = start(place, ['run', place.suite({ cases }), '-c', '2', ...options]);
  const [, batch] = await running.printed(/batch (\S+): 2 trials/);
  await running.printed(/✓ quick/);
  // The one it works in, and the one that verify is to run in.
  const [sandbox] = await containersOnce(
    [`offsite.batch=${batch}`],
    (containers) => containers.length === 2 && containers.every(({ state }) => state === 'running'),
  );
  const instance = sandbox?.instance ?? '';
  await containersOnce([`offsite.instance=${instance}`], (containers) =>
    containers.some(({ role, state }) => role === 'marker' && state === 'running'),
  );
  return { running, instance };
}
