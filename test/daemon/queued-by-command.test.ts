import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openDaemonPlace } from './daemon-place.ts';

test('a suite that is queued at the service for daemons is run by one that watches it', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  const suite = {
    suite: { id: 'small', prompt: 'Do it.' },
    trials: 2,
    variants: [{ model: 'none', harness: 'command', profile: 'worker' }],
    cases: [{ id: 'a', verify: 'cat done.txt', artifacts: ['done.txt'] }],
  };
  const file = at.place.write('suite.json', JSON.stringify(suite));
  const whole = await at.command('service', 'start', file, '--for-daemons');
  expect(whole.exitCode).toBe(2);
  expect(whole.stderr).toContain('cases[0].artifacts');
  expect(whole.stderr, 'what daemon.profiles has for the harness').not.toContain('variants[0].profile');
  const started = await at.command('service', 'start', file, '--for-daemons', '--drop-local');
  expect(started, started.stderr).toMatchObject({ exitCode: 0 });
  expect(started.stderr).toContain('left out: cases[0].artifacts');
  expect(started.stderr).toContain('daemons with small in daemon.suites run it');
  const { exitCode, stderr } = await at.drained();
  expect(exitCode, stderr).toBe(0);
  expect(await at.runs('a')).toMatchObject([{ trials: [{ status: 'reported' }, { status: 'reported' }] }]);
});

test('the results of a batch that several machines share are seen as a whole, and a prune says what it keeps', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  await at.queue(['a', 'b'], { trials: 2 });
  const [{ id = '', batchId = '' } = {}] = await at.runs('a');
  // Another machine has run one of the four.
  await at.endElsewhere(id, 'a');
  const waiting = (await at.command('service', 'runs')).stdout;
  expect(waiting).toMatch(new RegExp(`small +2 +1 of 4 +0 +1 +0 % +${batchId}`));
  expect((await at.drained()).exitCode).toBe(0);
  expect(at.service.asked.filter((operation) => operation === 'evals.reportTrial')).toHaveLength(3);

  const all = (await at.command('service', 'runs', 'small')).stdout;
  expect(all).toMatch(new RegExp(`small +2 +4 of 4 +3 +1 +75 % +${batchId}`));
  const { batches } = JSON.parse((await at.command('service', 'runs', '--json')).stdout);
  expect(batches).toMatchObject([{ id: batchId, ended: 4, trials: 4, passRate: 0.75 }]);
  const runs = (await at.command('service', 'runs', batchId)).stdout;
  expect(runs).toMatch(/ a +.* 1 of 2 /);
  expect(runs).toMatch(/ b +.* 2 of 2 /);
  const shown = await at.command('show');
  expect(shown.stdout).toContain('found at the service');
  expect(shown.stdout, 'what the id of a variant stands for').toMatch(/^v_\w+: command.*, model none$/m);
  expect(shown.stdout).toContain(`with what others ran of it: offsite service runs ${batchId}`);
  expect((await at.command('data', 'batches')).stdout).toContain('found at the service');

  const typo = await at.command('service', 'runs', 'smal');
  expect(typo.exitCode).toBe(2);
  expect(typo.stderr).toMatch(
    /the service http:\S+ has no case, suite or recent batch smal; did you mean "small"\?/,
  );
  expect(typo.stderr).toContain('It has the suites small.');

  const pruned = await at.command('data', 'prune', '--older-than', '0d');
  expect(pruned.stdout).toContain('removed 1 batch, 3 trials, 0 blobs');
  expect(pruned.stderr).toMatch(/kept \d+ blobs \(.*\) that nothing needs now: they are not a day old/);
});

test('a suite whose scripts read variables is not queued for daemons, which get none', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  const write = (verify: string) => {
    const suite = {
      suite: { id: 'small', prompt: 'Do it.' },
      trials: 1,
      variants: [{ model: 'none', harness: 'command', profile: 'worker' }],
      cases: [{ id: 'a', variables: { file: 'done.txt', who: 'nobody' }, verify }],
    };
    return at.place.write('suite.json', JSON.stringify(suite));
  };
  const refused = await at.command('service', 'start', write('grep -q "$who" {{file}}'), '--for-daemons');
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toContain('cases[0].variables.who: a script may read this');
  expect(refused.stderr).toContain('--drop-local');
  expect(refused.stderr).not.toContain('variables.file');

  const file = write('grep -q "{{who}}" {{file}}');
  expect((await at.command('service', 'start', file, '--for-daemons')).stderr).not.toContain('variables');
});

test('a run whose checks or scripts need variables is not run by a daemon that did not get the suite', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  const suite = {
    suite: { id: 'small', prompt: 'Do it.' },
    trials: 1,
    variants: [{ model: 'none', harness: 'command', profile: 'worker' }],
    cases: [
      { id: 'a', variables: { gone: 'done.txt' }, checks: [{ file: '{{gone}}', absent: true }] },
      { id: 'b', variables: { gone: 'done.txt' }, checks: [{ file: 'done.txt' }] },
      { id: 'c', variables: { gone: 'done.txt' }, verify: 'test ! -e "$gone"' },
    ],
  };
  const file = at.place.write('suite.json', JSON.stringify(suite));
  const started = await at.command('service', 'start', file, '--for-daemons', '--drop-local');
  expect(started, started.stderr).toMatchObject({ exitCode: 0 });
  await at.daemon();
  const { parked, waiting } = await at.once(
    ({ finished, parked, waiting }) => finished.passed === 1 && parked.length + waiting.length === 2,
  );
  expect(parked).toMatchObject([{ reason: expect.stringContaining('its checks need the variable gone') }]);
  expect(waiting).toMatchObject([{ reason: expect.stringContaining('its verify reads $gone') }]);
});

test('a key that the service refuses is said once, with what to do', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  await at.daemon([], { OFFSITE_API_KEY: 'a-key-of-another-service' });
  const { health, polls } = await at.once(
    ({ health, polls }) => String(health.troubles).includes('refuses the key') && polls.length > 0,
  );
  expect(health.troubles).toEqual([expect.stringContaining('it refuses the key')]);
  expect(polls).toMatchObject([{ trouble: 'the service refuses the key' }]);
  expect((await at.command('daemon', 'status')).stdout.match(/offsite service keys create/g)).toHaveLength(1);
});

test('a batch that no daemon watches is ended by its id, without a daemon', { timeout: 60_000 }, async () => {
  await using at = await openDaemonPlace();
  at.configure();
  await at.queue(['a', 'b'], { trials: 2, suite: 'a-typo' });
  const [{ id: run = '', batchId = '' } = {}] = await at.runs('a');
  const one = await at.command('data', 'abandon', run);
  expect(one.stdout, one.stderr).toBe(`abandoned run ${run}: 2 open trials ended as void\n`);
  const rest = await at.command('data', 'abandon', batchId);
  expect(rest.stdout, rest.stderr).toBe(`abandoned batch ${batchId}: 2 open trials ended as void\n`);
  for (const caseId of ['a', 'b'])
    expect(await at.runs(caseId)).toMatchObject([
      { status: 'completed', trials: [{ status: 'voided' }, { status: 'voided' }] },
    ]);
  expect((await at.command('data', 'abandon', batchId)).stderr).toContain(`batch ${batchId} `);

  await at.queue(['c'], { trials: 2, suite: 'a-typo' });
  const [{ batchId: whole = '' } = {}] = await at.runs('c');
  const ended = await at.command('data', 'abandon', whole);
  expect(ended.stdout, ended.stderr).toBe(`abandoned batch ${whole}: 2 open trials ended as void\n`);
  const nothing = await at.command('data', 'abandon', 'batch_nope');
  expect(nothing).toMatchObject({ exitCode: 2 });
  expect(nothing.stderr).toContain(`the data folder ${at.place.dataFolder} has no batch batch_nope`);
});

test('a batch is found whole by its id, however many newer runs its cases have', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  await at.queue(['a', 'b'], { trials: 1, suite: 'a-typo' });
  const [{ batchId = '' } = {}] = await at.runs('b');
  // The service lists 20 runs a page.
  for (let newer = 0; newer < 45; newer++) await at.queue(['a'], { trials: 1, suite: 'a-typo' });
  const runs = (await at.command('service', 'runs', batchId)).stdout;
  expect(runs).toMatch(/ a +.* 0 of 1 /);
  expect(runs).toMatch(/ b +.* 0 of 1 /);
  const ended = await at.command('data', 'abandon', batchId);
  expect(ended.stdout, ended.stderr).toBe(`abandoned batch ${batchId}: 2 open trials ended as void\n`);
});

test('what others have claimed of an abandoned batch goes on, and each call says so', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  const [a = '', b = ''] = await at.queue(['a', 'b'], { trials: 2, suite: 'a-typo' });
  const [{ batchId = '' } = {}] = await at.runs('a');
  const claimed = (id: string, ordinal: number, more: { seconds: number; attempt?: number }) =>
    at.service.ask('evals.claimTrial', { id, ordinal, agent: 'another', ...more }) as Promise<{
      attempt: number;
    }>;
  await claimed(a, 0, { seconds: 600 });
  const { attempt } = await claimed(b, 0, { seconds: 600 });
  await claimed(b, 1, { seconds: 600 });

  const goOn = (count: string) => `${count} claimed or running at daemons: they go on\n`;
  const first = await at.command('data', 'abandon', batchId);
  expect(first).toMatchObject({
    exitCode: 3,
    stdout: `batch ${batchId} is not ended: 1 open trial ended as void; ${goOn('3 trials')}`,
    stderr: expect.stringContaining(`then this again. Runs: ${a}, ${b}`),
  });
  const second = await at.command('data', 'abandon', batchId);
  expect(second).toMatchObject({
    exitCode: 3,
    stdout: `batch ${batchId} is not ended: ${goOn('3 trials')}`,
  });
  const run = await at.command('data', 'abandon', a);
  expect(run).toMatchObject({ exitCode: 3, stdout: `run ${a} is not ended: ${goOn('1 trial')}` });

  await claimed(b, 0, { seconds: 0, attempt });
  const released = await at.command('data', 'abandon', batchId);
  expect(released).toMatchObject({
    exitCode: 3,
    stdout: `batch ${batchId} is not ended: 1 open trial ended as void; ${goOn('2 trials')}`,
  });
  await at.endElsewhere(b, 'b', 1);
  const ended = await at.command('data', 'abandon', b);
  expect([ended.exitCode, ended.stderr]).toEqual([
    2,
    expect.stringContaining(`run ${b} has no open trial for daemons at the service`),
  ]);
});

test('a backup has the suites that wait', async () => {
  await using at = await openDaemonPlace();
  at.configure();
  const suite = {
    suite: { id: 'waits', prompt: 'Do it.' },
    trials: 1,
    variants: [{ model: 'none', harness: 'command', profile: 'worker' }],
    cases: [{ id: 'a', verify: 'cat done.txt' }],
  };
  const file = at.place.write('suite.json', JSON.stringify(suite));
  // No daemon has run in this folder yet.
  const enqueued = await at.command('daemon', 'enqueue', file);
  expect(enqueued, enqueued.stderr).toMatchObject({ exitCode: 0 });
  const copy = join(at.place.folder, 'copy');
  const backedUp = await at.command('data', 'backup', copy);
  expect(backedUp.stdout, backedUp.stderr).toContain(', 1 suite that no daemon has started and');
  const queue = join(at.place.dataFolder, 'queue');
  const [queued = ''] = readdirSync(queue);
  expect(readFileSync(join(copy, 'queue', queued))).toEqual(readFileSync(join(queue, queued)));
});
