import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, vi } from 'vitest';
import { offsite, start } from './offsite.ts';
import type { Place } from './place.ts';

/**
 * Runs one trial of three to its end, and stops for good in another one: whichever of `b` and `c` is ready
 * first. Resolves with the batch's id, and the case of the trial that was stopped.
 */
export async function died(place: Place): Promise<{ batch: string; stopped: string }> {
  const acts = { a: 'true', b: 'sleep 600', c: 'sleep 600' };
  const cases = Object.entries(acts).map(([id, act]) => ({ id, variables: { act }, verify: 'true' }));
  const running = start(place, ['run', place.suite({ cases }), '-c', '1']);
  await running.printed(/a · worker #0 +passed/);
  const [batch] = await batches(place);
  const stopped = await begun(place);
  const atWork = await offsite(place, ['data', 'abandon', batch?.id ?? '']);
  expect(atWork.exitCode).toBe(2);
  expect(atWork.stderr).toContain(
    `another process works on batch ${batch?.id}: process ${running.pid}, since 2`,
  );
  running.kill('SIGKILL');
  await running.ended;
  return { batch: batch?.id ?? '', stopped };
}

/** The case of the trial that runs. A container may be there before its trial has begun. */
async function begun(place: Place): Promise<string> {
  using ledger = new DatabaseSync(join(place.dataFolder, 'ledger.db'), { readOnly: true });
  const running = ledger.prepare(
    "SELECT case_id FROM trials JOIN runs ON runs.key = trials.run WHERE trials.state = 'running'",
  );
  return await vi.waitFor(
    () => {
      const row = running.get();
      expect(row, 'a running trial').toBeDefined();
      return String(row?.case_id);
    },
    { timeout: 60_000, interval: 50 },
  );
}

export async function batches(
  place: Place,
): Promise<{ id: string; state: string; passed: number; void: number }[]> {
  return JSON.parse((await offsite(place, ['data', 'batches', '--json'])).stdout);
}
