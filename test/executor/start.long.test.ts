import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Ended, start as startCommand } from '../cli/offsite.ts';
import { endedRuns, openServingPlace, type ServingPlace } from './serving-place.ts';

/** A suite with what no request can carry: profiles, artifacts, and a place for verify. */
function suiteAt({ place }: ServingPlace, act = 'echo hi > out.txt; touch /opt/mark'): string {
  return place.suite({
    cases: [
      {
        id: 'greets',
        variables: { act },
        verify: { source: 'grep hi out.txt\ntest -e /opt/mark', in: 'same', ignore: ['/opt/**'] },
        artifacts: ['out.txt'],
      },
    ],
    variants: [
      { name: 'sulky', model: 'none', harness: 'command', profile: 'sulky', sandbox: 'other' },
      { name: 'greeter', model: 'none', harness: 'command', profile: 'greeter' },
    ],
    config: {
      profiles: { sulky: { run: 'touch /opt/mark' }, greeter: { run: 'eval "$act"' } },
      // What tells the variants apart for the service.
      sandboxes: { local: { memory: '256m' }, other: { memory: '256m' } },
      daemon: { profiles: { command: 'greeter' } },
    },
  });
}

function json(ended: Ended): unknown {
  expect(ended.stdout, ended.stderr).not.toBe('');
  return JSON.parse(ended.stdout);
}

test('start runs a platform batch here if no server runs, as it is planned, and its exit code is that of run', async () => {
  await using at = openServingPlace();
  const suite = suiteAt(at);
  const ended = await at.command('service', 'start', suite, '--json', '--trials', '2', '--fail-under', '0.9');
  expect(ended.exitCode, ended.stderr).toBe(1);
  expect(json(ended)).toMatchObject({
    service: 'platform',
    passed: 2,
    failed: 2,
    unreported: 0,
    runs: [
      { case: 'greets', variant: 'sulky', passed: 0, failed: 2 },
      { case: 'greets', variant: 'greeter', passed: 2, failed: 0 },
    ],
  });
  const serving = await at.serve();
  const runs = await endedRuns(serving, 'greets');
  expect(runs.map(({ local, distribution }) => [local, distribution?.passed])).toEqual([
    [false, 2],
    [false, 0],
  ]);
  const [trial] = runs[0]?.trials ?? [];
  expect(trial?.status).toBe('completed');
  expect(trial?.artifacts?.map(({ path }) => path)).toContain('out.txt');
});

test('what a command leaves when it is interrupted, or never runs, the next server runs as it was planned', async () => {
  await using at = openServingPlace();
  const suite = suiteAt(at, 'echo hi > out.txt; touch /opt/mark; until [ -e /tmp/go ]; do sleep 0.1; done');
  const args = [
    'service',
    'start',
    suite,
    '--variant',
    'greeter',
    '--config',
    `${at.place.folder}/project/offsite.yaml`,
  ];
  const running = startCommand(at.place, args);
  await running.printed(/batch batch_\S+: 1 trial/);
  await expect.poll(() => at.attempts().length, { timeout: 60_000 }).toBe(1);
  running.kill('SIGINT');
  const interrupted = await running.ended;
  expect(interrupted).toMatchObject({ exitCode: 130 });
  expect(interrupted.stderr).toContain('offsite serve');
  const resumed = await at.command('resume');
  expect(resumed.exitCode).toBe(2);
  expect(resumed.stderr).toContain('`offsite serve`');

  const left = await at.command('service', 'start', suiteAt(at), '--variant', 'sulky', '--no-wait', '--json');
  expect(left.exitCode, left.stderr).toBe(0);
  const { id } = json(left) as { id: string };
  // The profile of the interrupted batch is in its plan: it still waits for a file that never comes.
  const serving = await at.serve();
  await expect
    .poll(async () => (await at.command('show', id, '--json')).stdout, { timeout: 60_000 })
    .toContain('"failed": 1');
  await expect.poll(() => at.attempts().filter(({ ending }) => ending === null).length).toBe(1);
  serving.kill('SIGTERM');
  expect(await serving.ended).toMatchObject({ exitCode: 0 });
});

test('if a server runs, start returns at once, and with --wait it waits for what the server runs', async () => {
  await using at = openServingPlace();
  const suite = suiteAt(at);
  const serving = await at.serve();
  const started = await at.command('service', 'start', suite, '--json', '--variant', 'greeter');
  expect(started.exitCode, started.stderr).toBe(0);
  expect(started.stderr).toContain('running `offsite serve`');
  expect(json(started)).toMatchObject({
    service: 'platform',
    trials: 1,
    runs: [{ case: 'greets', variant: 'greeter' }],
  });
  const { id, batchId, runs } = json(started) as {
    id: string;
    batchId: string;
    runs: { id: string }[];
  };
  expect(batchId).toBe(id);
  const [run] = await endedRuns(serving, 'greets');
  expect(run).toMatchObject({ id: runs[0]?.id, batchId: id, distribution: { passed: 1 } });

  const waited = await at.command('service', 'start', suite, '--json', '--fail-under', '0.9');
  expect(waited.exitCode, waited.stderr).toBe(1);
  expect(json(waited)).toMatchObject({
    service: 'platform',
    passed: 1,
    failed: 1,
    runs: [
      { variant: 'sulky', failed: 1 },
      { variant: 'greeter', passed: 1 },
    ],
  });
  const again = await at.command('service', 'rerun', id.slice(0, 12), 'greets:greeter');
  expect(again.exitCode, again.stderr).toBe(0);
  expect(await endedRuns(serving, 'greets')).toMatchObject([
    { batchId: id, distribution: { passed: 1 } },
    {},
    {},
    { batchId: id },
  ]);
});

test('an interrupted --wait leaves the batch to the server, and says so', async () => {
  await using at = openServingPlace();
  const suite = suiteAt(at, 'sleep 2; echo hi > out.txt; touch /opt/mark');
  const serving = await at.serve();
  const config = `${at.place.folder}/project/offsite.yaml`;
  const waiting = startCommand(at.place, [
    'service',
    'start',
    suite,
    '--variant',
    'greeter',
    '--wait',
    '--config',
    config,
  ]);
  await waiting.printed(/started batch batch_/);
  waiting.kill('SIGINT');
  const { exitCode, stderr } = await waiting.ended;
  expect(exitCode).toBe(130);
  expect(stderr).toContain('SIGINT: no longer waiting; the batch continues');
  expect(stderr).toContain('running `offsite serve`');
  expect(await endedRuns(serving, 'greets')).toMatchObject([{ distribution: { passed: 1 } }]);
});

test('a threshold without the results that it is for is refused', async () => {
  await using at = openServingPlace();
  const refused = await at.command('service', 'start', suiteAt(at), '--no-wait', '--fail-under', '0.9');
  expect(refused).toMatchObject({ exitCode: 2, stdout: '' });
  expect(refused.stderr).toContain('--fail-under needs the results');
});

test('another service gets no batch that its request describes only in part, unless that is asked for', async () => {
  await using there = openServingPlace();
  there.configure({ profiles: { worker: { run: 'eval "$act"' } } });
  const serving = await there.serve();
  await using here = openServingPlace();
  const suite = suiteAt(here);
  const env = { OFFSITE_URL: serving.url, OFFSITE_API_KEY: serving.apiKey };
  const refused = await here.command('start', suite, '--variant', 'greeter', { env });
  expect(refused.exitCode).toBe(2);
  const lines = readFileSync(suite, 'utf8').split('\n');
  const lineOf = (key: string, nth = 0) =>
    lines.flatMap((line, n) => (line.includes(key) ? [n + 1] : []))[nth];
  for (const [path, line] of [
    ['variants[1].profile', lineOf('profile:', 1)],
    ['cases[0].verify.in', lineOf('in: same')],
    ['cases[0].verify.ignore', lineOf('ignore:')],
    ['cases[0].artifacts', lineOf('artifacts:')],
  ]) {
    expect(refused.stderr).toMatch(
      new RegExp(`suite.yaml:${line}:\\d+: ${path?.toString().replace(/[[\]]/g, '\\$&')}: `),
    );
  }
  expect(refused.stderr).not.toContain('variants[0]');

  const args = ['--variant', 'greeter', '--drop-local', '--wait', '--json'];
  const dropped = await here.command('start', suite, ...args, { env });
  // There verify runs in a fresh sandbox, without what the agent left beside its workspace.
  expect(dropped.exitCode, dropped.stderr).toBe(0);
  expect(json(dropped)).toMatchObject({
    passed: 0,
    failed: 1,
    runs: [{ status: 'completed', variant: 'greeter' }],
  });
});

test('a choice of variants after which the service would take one for another is refused', async () => {
  await using at = openServingPlace();
  const variant = { model: 'none', harness: 'command', profile: 'worker' };
  const suite = at.place.suite({
    cases: [{ id: 'a', verify: 'true' }],
    variants: [
      { ...variant, name: 'first' },
      { ...variant, name: 'second' },
    ],
  });
  const second = await at.command('service', 'start', suite, '--variant', 'second', '--no-wait');
  expect(second.exitCode).toBe(2);
  expect(second.stderr).toContain('take the variant second for first');
  const unknown = await at.command('service', 'start', suite, '--variant', 'third', '--no-wait');
  expect(unknown.exitCode).toBe(2);
  expect(unknown.stderr).toContain('available: first, second');
  expect(await at.command('service', 'start', suite, '--variant', 'first', '--no-wait')).toMatchObject({
    exitCode: 0,
  });
});
