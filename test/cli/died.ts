import { expect } from 'vitest';
import { containersOnce } from './containers.ts';
import { offsite, start } from './offsite.ts';
import type { Place } from './place.ts';

/**
 * Runs one trial of three to its end, and stops for good in another one: whichever of `b` and `c` is ready
 * first. Resolves with the batch's id.
 */
export async function died(place: Place): Promise<string> {
  const acts = { a: 'true', b: 'sleep 600', c: 'sleep 600' };
  const cases = Object.entries(acts).map(([id, act]) => ({ id, variables: { act }, verify: 'true' }));
  const running = start(place, ['run', place.suite({ cases }), '-c', '1']);
  await running.printed(/a · worker #0 +passed/);
  const [batch] = await batches(place);
  // The container of the second trial is there.
  await containersOnce([`offsite.batch=${batch?.id}`], (found) => found.length > 0);
  const atWork = await offsite(place, ['data', 'abandon', batch?.id ?? '']);
  expect(atWork.exitCode).toBe(2);
  expect(atWork.stderr).toContain(`another process works on batch ${batch?.id}`);
  running.kill('SIGKILL');
  await running.ended;
  return batch?.id ?? '';
}

export async function batches(
  place: Place,
): Promise<{ id: string; state: string; passed: number; void: number }[]> {
  return JSON.parse((await offsite(place, ['data', 'batches', '--json'])).stdout);
}
