import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { needsOf, queueFor, unmet, type WorkerProfile } from '../../src/fleet/placement.ts';
import { openFleetPlace } from './fleet-place.ts';

const GiB = 1024 ** 3;
const soon = { timeout: 120_000, interval: 200 };

const profile: WorkerProfile = {
  version: '1.0.0',
  format: '1',
  service: 'https://evals.example',
  pools: ['default'],
  concurrency: 2,
  engine: { version: '29.0.0', arch: 'amd64', cpus: 8, memory: 16 * GiB },
  trialMemory: 6 * GiB,
  labels: ['amd64'],
  models: ['sonnet'],
  harnesses: ['codex'],
  runtimes: ['runc'],
  sandboxes: ['local'],
  profiles: [],
};
const needs = needsOf({ memory: 2 * GiB, labels: [], models: [], harnesses: ['codex'] });

test('what no worker has is told, and what none has together', () => {
  const reasonFor = (more: Partial<typeof needs>, workers = [profile]) => {
    return unmet(needsOf({ ...needs, ...more }), 'default', workers);
  };
  expect(reasonFor({})).toBeUndefined();
  expect(reasonFor({ labels: ['gpu'] })).toBe('no worker has the label gpu');
  expect(reasonFor({ labels: ['arm64'] })).toBe('no worker has the label arm64');
  expect(reasonFor({ models: ['opus'] })).toBe('no worker has the model opus in its offsite.yaml');
  expect(reasonFor({ memory: 7 * GiB })).toBe(
    'no worker has 7 GiB of memory for a trial (the most is 6 GiB: fewer trials at a time leave more for each)',
  );
  expect(reasonFor({ runtimes: ['runsc'] })).toBe('no worker has the runtime runsc');
  expect(reasonFor({ harnesses: ['new'] })).toBe('no worker has the harness new');
  expect(
    reasonFor({ labels: ['gpu'], models: ['opus'] }, [
      { ...profile, labels: ['amd64', 'gpu'] },
      { ...profile, models: ['opus'] },
    ]),
  ).toBe('no worker has all of this: it has the label gpu, it has the model opus in its offsite.yaml');
  expect(reasonFor({}, [{ ...profile, pools: ['night'] }])).toBe('no worker joins the pool default');
  expect(reasonFor({}, [{ ...profile, ended: true }])).toBe('no worker is running');
  // The smallest trials run on any machine.
  expect(reasonFor({ memory: 256 * 1024 ** 2 }, [{ ...profile, trialMemory: 1 }])).toBeUndefined();
});

test('equal needs have one task queue, in whatever order they are named', () => {
  const queue = (more: Partial<typeof needs>) => queueFor('offsite', 'default', { ...needs, ...more });
  expect(queue({ labels: ['b', 'a', 'b'] })).toBe(queue({ labels: ['a', 'b'] }));
  expect(queue({ memory: 1.9 * GiB })).toBe(queue({ memory: 2 * GiB }));
  expect(queue({ memory: 2.1 * GiB })).not.toBe(queue({ memory: 2 * GiB }));
  expect(queue({ labels: ['gpu'] })).not.toBe(queue({}));
});

/** A suite with a variant in each of these sandboxes. */
function suiteOf(sandboxes: string[], trials = 1): string {
  return stringify({
    suite: { id: 'small', prompt: 'Do it.' },
    trials,
    variants: sandboxes.map((sandbox) => {
      return { name: sandbox, model: 'none', harness: 'command', profile: 'worker', sandbox };
    }),
    cases: [{ id: 'a', verify: 'cat done.txt' }],
  });
}

test('a trial goes to a worker with its label, and while there is none the fleet says so', async () => {
  await using fleet = await openFleetPlace();
  const sandboxes = {
    local: { memory: '256m' },
    graphics: { memory: '256m', needs: ['gpu'] },
    huge: { memory: '896g' },
  };
  fleet.suite({ cases: [], config: { sandboxes } });
  const file = fleet.place.write('suite.yaml', suiteOf(['local', 'graphics', 'huge']));
  await fleet.worker('plain', ['-c', '1']);
  const watching = fleet.begin(['fleet', 'run', file]);
  const at = performance.now();
  await watching.printed(/1 trial waits: no worker has the label gpu/);
  await watching.printed(/1 trial waits: no worker has 896 GiB of memory for a trial/);
  expect(performance.now() - at).toBeLessThan(60_000);
  const reported = async () => {
    const runs = await fleet.runs('a');
    return runs.flatMap(({ trials = [] }) => trials).filter(({ status }) => status === 'reported').length;
  };
  await expect.poll(reported, soon).toBe(1);
  const status = await fleet.command(['status']).ended;
  expect(status.stdout).toContain('    1 trial waits: no worker has the label gpu\n');
  const { batches, workers } = JSON.parse((await fleet.command(['status', '--json']).ended).stdout);
  expect(workers).toMatchObject([{ isThere: true, profile: { labels: ['amd64'], concurrency: 1 } }]);
  expect(batches[0].waiting.map(({ trials }: { trials: number }) => trials)).toEqual([1, 1]);
  const gpu = await fleet.worker('gpu', ['-c', '1'], { config: { labels: ['gpu'] } });
  await expect.poll(reported, soon).toBe(2);
  gpu.kill('SIGTERM');
  await gpu.ended;
  // The one that ended is not waited for: the fleet knows that it took its leave.
  const [batch] = batches;
  expect((await fleet.command(['cancel', batch.id]).ended).exitCode).toBe(0);
  expect((await watching.ended).stderr).toContain('the batch was canceled');
});

test('trials of a batch in slices wait for a worker with their label, and start when it joins', async () => {
  await using fleet = await openFleetPlace();
  const sandboxes = { local: { memory: '256m' }, graphics: { memory: '256m', needs: ['gpu'] } };
  fleet.suite({ cases: [], config: { sandboxes } });
  const file = fleet.place.write('suite.yaml', suiteOf(['graphics'], 8));
  await fleet.worker('plain', ['-c', '1']);
  const batch = await fleet.started(file, '--slice', '4', '--window', '2');
  const status = async () => (await fleet.command(['status']).ended).stdout;
  await expect.poll(status, soon).toContain('    2 trials wait: no worker has the label gpu\n');
  await fleet.worker('gpu', ['-c', '2'], { config: { labels: ['gpu'] } });
  const handle = fleet.client.workflow.getHandle(batch);
  expect(await handle.result()).toMatchObject({ scheduled: 8, passed: 8, lost: 0 });
  const slices = await Array.fromAsync(
    fleet.client.workflow.list({ query: `ParentWorkflowId = '${batch}'` }),
  );
  expect(slices).toHaveLength(2);
});

test('a sandbox that needs a label runs on no machine without it, with or without a fleet', async () => {
  await using fleet = await openFleetPlace();
  fleet.suite({ cases: [], config: { sandboxes: { local: { memory: '256m', needs: ['gpu'] } } } });
  const file = fleet.place.write('suite.yaml', suiteOf(['local']));
  const refused = await fleet.begin(['run', file]).ended;
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toContain('a sandbox needs gpu, which this machine does not have');
});
