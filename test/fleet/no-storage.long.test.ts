import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openFleetPlace } from './fleet-place.ts';
import { payloadsIn } from './payloads.ts';

test('without a storage the plan goes over Temporal if that is allowed, and the workers keep the records', async () => {
  await using fleet = await openFleetPlace();
  const prompt = 'Whisper the word quincunx.';
  const cases = [{ id: 'a', verify: 'cat done.txt' }];
  const refused = await fleet.run(fleet.suite({ cases, prompt, fleet: { storage: undefined } }));
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toMatch(/no storage for plans and records[\s\S]*payloads: full/);
  expect(await fleet.runs('a')).toEqual([]);

  const file = fleet.suite({ cases, prompt, trials: 4, fleet: { storage: undefined, payloads: 'full' } });
  await fleet.worker('one', ['-c', '1']);
  await fleet.worker('two', ['-c', '1']);
  const batch = await fleet.started(file, '--slice', '2', '--window', '1');
  const status = await fleet.command(['status']).ended;
  expect(status.stdout).toMatch(/^2 workers:\n.* holds \d, seen .*\n.* holds \d, seen/);
  expect(status.stdout).not.toMatch(/wait: |can read/);
  const { exitCode, stdout, stderr } = await fleet.command(['attach', batch]).ended;
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toContain('4 passed, 0 failed, 0 void');
  const elsewhere = join(fleet.place.folder, 'elsewhere');
  const pulled = await fleet.command(['pull', batch, '--json'], {}, elsewhere).ended;
  expect(pulled.exitCode, pulled.stderr).toBe(0);
  const { kept } = JSON.parse(pulled.stdout) as { kept: { folder: string; records: number }[] };
  expect(kept.reduce((sum, { records }) => sum + records, 0)).toBe(4);
  for (const { folder } of kept) expect(existsSync(join(folder, 'ledger.db'))).toBe(true);
  // Only the workflow of the batch has the plan, once and compressed.
  for (const id of [batch, `${batch}/slice-1`]) {
    const history = await fleet.client.workflow.getHandle(id).fetchHistory();
    expect(payloadsIn(history).join('\n')).not.toContain('quincunx');
    expect(payloadsIn(history).join('\n').includes('"plan"')).toBe(id === batch);
  }
});

test('without a storage, the fleet polls for no queued runs', async () => {
  await using fleet = await openFleetPlace();
  fleet.suite({
    cases: [],
    fleet: { storage: undefined, payloads: 'full' },
    config: { daemon: { suites: ['small'] } },
  });
  const { exitCode, stderr } = await fleet.command(['poll']).ended;
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(/queued runs reach the workers through a storage[\s\S]*Name one in offsite.yaml/);
});

test('a plan that is too large for Temporal is refused before anything starts', async () => {
  await using fleet = await openFleetPlace();
  const noise = Array.from({ length: 20_000 }, () => Math.random().toString(36)).join(' ');
  const cases = [{ id: 'a', verify: 'cat done.txt', prepare: `: ${noise}` }];
  const file = fleet.suite({ cases, fleet: { storage: undefined, payloads: 'full' } });
  const { exitCode, stderr } = await fleet.run(file);
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(/at most 100000 go over Temporal[\s\S]*Name a storage/);
  expect(await fleet.runs('a')).toEqual([]);
});
