import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { engineSocket } from '../engine/engine-socket.ts';
import { type OwnEngine, ownEngine } from '../engine/faults/own-engine.ts';
import { sshServer } from '../engine/ssh-server.ts';
import { loadBaseImage } from '../engine/with-base-image.ts';
import { offsite, start } from './offsite.ts';
import { openPlace } from './place.ts';

// The engine that the tests use, and one of the test's own.
const local = `unix://${engineSocket}`;
let own: OwnEngine;
beforeAll(async () => {
  own = await ownEngine({ storageDriver: 'overlay2' });
  await own.start();
  await loadBaseImage(own.host);
});
afterAll(() => own?.[Symbol.asyncDispose](), 120_000);

const engines = () => [
  { name: 'here', host: local, trials: 2 },
  { name: 'other', host: own.host, trials: 2, labels: ['special'] },
];

interface Summary {
  passed: number;
  failed: number;
  void: number;
  runs: { id: string; case: string; trials: { ordinal: number; verdict: string }[] }[];
}

/** The engine of each trial, by its case and ordinal. */
async function enginesOfTrials(place: ReturnType<typeof openPlace>, { runs }: Summary) {
  const found = new Map<string, string>();
  for (const run of runs) {
    for (const { ordinal } of run.trials) {
      const shown = await offsite(place, ['show', `${run.id}#${ordinal}`, '--json']);
      found.set(`${run.case}#${ordinal}`, JSON.parse(shown.stdout).record.engine);
    }
  }
  return found;
}

/** Containers that an agent owns. */
async function ownedOn(host: string, label = 'offsite.instance'): Promise<string[]> {
  const { stdout } = await execa('docker', [
    '--host',
    host,
    'ps',
    '--all',
    '--quiet',
    '--no-trunc',
    '--filter',
    `label=${label}`,
  ]);
  return stdout.split('\n').filter((id) => id !== '');
}

test('trials are spread over two engines, and those with a need go where it is met', async () => {
  using place = openPlace();
  const suite = place.suite({
    cases: [{ id: 'plain', verify: 'true', variables: { act: 'sleep 1' } }],
    trials: 4,
    config: { engines: engines() },
  });
  const { stdout, stderr, exitCode } = await offsite(place, ['run', suite, '--json']);
  expect(exitCode, stderr).toBe(0);
  const summary: Summary = JSON.parse(stdout);
  expect(summary).toMatchObject({ passed: 4, failed: 0, void: 0 });
  const at = [...(await enginesOfTrials(place, summary)).values()];
  expect(at.toSorted()).toEqual(['here', 'here', 'other', 'other']);
});

test('a sandbox that needs a label runs on the engine that has it', async () => {
  using place = openPlace();
  const suite = place.suite({
    cases: [{ id: 'special', verify: 'true' }],
    trials: 3,
    sandbox: { needs: ['special'] },
    config: { engines: engines() },
  });
  const { stdout, stderr, exitCode } = await offsite(place, ['run', suite, '--json']);
  expect(exitCode, stderr).toBe(0);
  const at = [...(await enginesOfTrials(place, JSON.parse(stdout))).values()];
  expect(at).toEqual(['other', 'other', 'other']);
});

test('a label that no engine has is refused before anything starts', async () => {
  using place = openPlace();
  const suite = place.suite({
    cases: [{ id: 'special', verify: 'true' }],
    sandbox: { needs: ['gpu'] },
    config: { engines: engines() },
  });
  const { exitCode, stderr } = await offsite(place, ['run', suite]);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('needs gpu')]);
});

test('an engine that is away at the start runs trials once it answers', async () => {
  using place = openPlace();
  await using server = await sshServer();
  await server.stop();
  const late = { name: 'late', host: `${server.host}${own.host.slice('unix://'.length)}`, trials: 2 };
  const suite = place.suite({
    cases: [{ id: 'plain', verify: 'true', variables: { act: 'sleep 3' } }],
    trials: 10,
    config: { engines: [{ name: 'here', host: local, trials: 1 }, late] },
  });
  const { PATH = '' } = server.env;
  const running = start(place, ['run', suite, '--json'], { env: { PATH } });
  await running.printed(/the engine late does not answer: .*\n.*\n.*Trials run on the others/);
  await running.printed(/1 trial at a time/);
  await running.printed(/on here/);
  await server.start();
  await running.printed(/the engine late answers now/);
  const { stdout, stderr, exitCode } = await running.ended;
  expect(exitCode, stderr).toBe(0);
  const summary: Summary = JSON.parse(stdout);
  expect(summary, stderr).toMatchObject({ passed: 10, failed: 0, void: 0 });
  const at = Map.groupBy((await enginesOfTrials(place, summary)).values(), (name) => name);
  expect(at.get('late')?.length, stderr).toBeGreaterThanOrEqual(2);
  expect(at.get('here')?.length, stderr).toBeGreaterThanOrEqual(1);
  expect(await ownedOn(own.host)).toEqual([]);
});

test('after SIGKILL a batch of two engines is resumed, and nothing is left on either', async () => {
  using place = openPlace();
  const suite = place.suite({
    cases: [
      { id: 'good', verify: 'test -f done.txt', variables: { act: 'sleep 2; touch done.txt' } },
      { id: 'bad', verify: 'test -f done.txt', variables: { act: 'sleep 2' } },
    ],
    trials: 5,
    config: { engines: engines() },
  });
  const running = start(place, ['run', suite, '--json']);
  const [, batch] = await running.printed(/batch (\S+): 10 trials/);
  await running.printed(/ on other\n/);
  await running.printed(/ on here\n/);
  // Other Offsite processes use the machine's engine too.
  const leftHere = () => ownedOn(local, `offsite.batch=${batch}`);
  // Between two trials an engine has no container of the batch.
  await expect.poll(() => Promise.all([ownedOn(own.host), leftHere()])).not.toContainEqual([]);
  running.kill('SIGKILL');
  const { signal, stderr: said } = await running.ended;
  expect(signal).toBe('SIGKILL');
  const finished = said.match(/^ {2}[✓✗] /gm)?.length ?? 0;
  expect(finished).toBeLessThan(10);
  expect(await ownedOn(own.host)).not.toEqual([]);
  expect(await leftHere()).not.toEqual([]);

  const config = ['--config', `${place.folder}/project/offsite.yaml`];
  const resumed = await offsite(place, ['resume', '--json', ...config]);
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  const [summary] = JSON.parse(resumed.stdout) as Summary[];
  expect(summary, resumed.stderr).toMatchObject({ passed: 5, failed: 5, void: 0 });
  // What was finished did not run again.
  expect(resumed.stderr.match(/^ {2}[✓✗] /gm)).toHaveLength(10 - finished);
  const at = summary ? await enginesOfTrials(place, summary) : new Map();
  expect(new Set(at.values())).toEqual(new Set(['here', 'other']));
  expect(resumed.stderr).toMatch(
    /removed from the engine other: \d+ container.* whose Offsite process no longer runs/,
  );
  expect(await ownedOn(own.host)).toEqual([]);
  expect(await leftHere()).toEqual([]);
});

test('of 20 trials on two engines, all get their true verdicts though one engine is killed', async () => {
  using place = openPlace();
  const suite = place.suite({
    cases: [
      { id: 'good', verify: 'test -f done.txt', variables: { act: 'sleep 2; touch done.txt' } },
      { id: 'bad', verify: 'test -f done.txt', variables: { act: 'sleep 2' } },
    ],
    trials: 10,
    config: { engines: engines() },
  });
  const running = start(place, ['run', suite, '--json']);
  // In the middle: two trials have ended on it, and others run there.
  await running.printed(/ on other\n(.*\n)*.* on other\n/);
  await own.crash();
  const { stdout, stderr, exitCode } = await running.ended;
  const summary: Summary = JSON.parse(stdout);
  expect(summary, stderr).toMatchObject({ passed: 10, failed: 10, void: 0 });
  expect(exitCode, stderr).toBe(0);
  expect(new Set((await enginesOfTrials(place, summary)).values())).toEqual(new Set(['here', 'other']));
  await own.start();
  const swept = await offsite(
    place,
    ['engine', 'clean', '--json', '--config', `${place.folder}/project/offsite.yaml`],
    {
      dataFolder: null,
    },
  );
  expect(swept.exitCode, swept.stderr).toBe(0);
  expect(await ownedOn(own.host)).toEqual([]);
  // Other agents use the machine's engine too.
  for (const { id } of summary.runs) expect(await ownedOn(local, `offsite.run=${id}`)).toEqual([]);
});
