import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Running } from '../cli/offsite.ts';
import { type DaemonPlace, openDaemonPlace } from './daemon-place.ts';

let at: DaemonPlace;
let daemon: Running;
let url: string;
beforeAll(async () => {
  at = await openDaemonPlace();
  at.configure({
    profiles: { worker: { run: 'echo done > done.txt' }, stuck: { run: 'sleep 100000' } },
    concurrency: 1,
    daemon: { suites: ['small', 'queued'] },
  });
  daemon = await at.daemon(['--listen', '0']);
  [, url = ''] = await daemon.printed(/"http":"(http:[^"]+)"/);
});
afterAll(() => at[Symbol.asyncDispose]());

const variant = { name: 'stuck', model: 'none', harness: 'command', profile: 'stuck' };

/** A suite file of one case beside the configuration. */
function suite(name: string, more: object): string {
  const cases = [{ id: name, verify: 'cat done.txt' }];
  const worker = { name: 'worker', model: 'none', harness: 'command', profile: 'worker' };
  const content = { suite: { id: name, prompt: 'Do it.' }, trials: 1, variants: [worker], cases, ...more };
  return at.place.write(`${name}.json`, JSON.stringify(content));
}

async function trialStatus(caseId: string): Promise<string | undefined> {
  return (await at.runs(caseId))[0]?.trials?.[0]?.status;
}

test('a daemon that works is healthy and ready, and tells its state to people and programs', async () => {
  await expect.poll(async () => (await fetch(`${url}/healthz`)).status).toBe(200);
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  const status = await (await fetch(`${url}/status`)).json();
  expect(status).toMatchObject({ mode: 'working', concurrency: 1, health: { ok: true, troubles: [] } });
  const { stdout } = await at.command('daemon', 'status');
  expect(stdout).toContain(`process ${(status as { pid: number }).pid}`);
  // Nobody has started the suite of its configuration yet, or its name is misspelt.
  expect(stdout).toContain('engine and service work; see below: 2 places without runs');
  expect(stdout).toContain(
    'suite queued: the service lists no case of it: no batch of it was started there yet, or its id in daemon.suites is wrong',
  );
  expect(JSON.parse((await at.command('daemon', 'status', '--json')).stdout)).toMatchObject({
    mode: 'working',
  });
});

test('nobody can tell it anything over HTTP, and only its user over the socket', async () => {
  expect((await fetch(`${url}/drain`, { method: 'POST' })).status).toBe(404);
  expect(statSync(join(at.place.dataFolder, 'control.sock')).mode & 0o777).toBe(0o600);
});

test('a second daemon of the same data folder is refused', async () => {
  const { exitCode, stderr } = await at.drained();
  expect(exitCode, 'a service manager tries again').toBe(3);
  expect(stderr).toContain('another daemon');
});

test('while it is paused no trial is begun; after unpause those run that nobody else has reported meanwhile', async () => {
  expect((await at.command('daemon', 'pause')).stdout).toContain('paused');
  expect((await fetch(`${url}/readyz`)).status).toBe(503);
  const [run = ''] = await at.queue(['paused']);
  const [elsewhere = ''] = await at.queue(['elsewhere']);
  await at.once(({ queued }) => queued === 2);
  expect(await trialStatus('paused')).toBe('queued');
  const { stdout } = await at.command('daemon', 'status');
  expect(stdout).toMatch(new RegExp(`2 queued runs:\n(.*\n)?  paused of small · ${run}  1 trial  batch_`));
  const resumed = await at.command('resume');
  expect(resumed.stdout, resumed.stderr).toContain('its daemon is paused: `offsite daemon resume` lets');
  // Another agent was quicker with this one.
  await at.endElsewhere(elsewhere, 'elsewhere');
  await at.once(({ queued }) => queued === 1);
  expect((await at.command('daemon', 'resume')).stdout).toContain('working again');
  await at.once(({ finished, outbox }) => finished.passed === 1 && outbox.queued === 0);
  expect((await at.runs('elsewhere'))[0]?.distribution).toMatchObject({ failed: 1 });
  expect((await at.runs('paused'))[0]).toMatchObject({ id: run, trials: [{ status: 'reported' }] });
});

test('the concurrency is changed while it runs', async () => {
  expect((await at.command('daemon', 'concurrency', '3')).stdout).toContain('3 trials at a time');
  await at.once(({ concurrency }) => concurrency === 3);
  await at.command('daemon', 'concurrency', '1');
});

describe('a suite file', () => {
  test('is checked when it is enqueued', async () => {
    const { exitCode, stderr } = await at.command('daemon', 'enqueue', suite('bad', { cases: [] }));
    expect(exitCode).toBe(2);
    expect(stderr).toContain('bad.json');
  });

  test('that was enqueued is started, run and reported, and leaves the queue', async () => {
    const { exitCode, stdout, stderr } = await at.command('daemon', 'enqueue', suite('queued', {}));
    expect(exitCode, stderr).toBe(0);
    const [, file = ''] = /queued as (\S+);/.exec(stdout) ?? [];
    await expect.poll(() => trialStatus('queued')).toBe('reported');
    await expect.poll(() => existsSync(file)).toBe(false);
    await at.once(({ polls }) => polls.length === 0);
    expect((await at.command('daemon', 'status')).stdout).toContain('all is well');
  });

  test('that somebody else dropped, and that is none, is put aside with the reason', async () => {
    const queue = join(at.place.dataFolder, 'queue');
    at.place.write('../data/queue/nightly.yaml', '{"half": ');
    const refused = join(queue, 'refused');
    await expect.poll(() => existsSync(join(refused, 'nightly.yaml'))).toBe(true);
    expect(readFileSync(join(refused, 'nightly.yaml.reason.txt'), 'utf8')).toMatch(
      /^`offsite daemon enqueue FILE` did not write .*\nName the file of the suite there, .*\n$/,
    );
    expect(readdirSync(queue)).toEqual(['refused']);
    const { stdout } = await at.command('daemon', 'status');
    expect(stdout).toMatch(/1 file of the queue refused.*\n.*nightly\.yaml: .*did not write this file/);
  });
});

test('a run that is canceled ends, is not run again, and frees its place', async () => {
  expect(await at.command('daemon', 'enqueue', suite('endless', { variants: [variant] }))).toMatchObject({
    exitCode: 0,
  });
  const { running } = await at.once(({ running }) => running.some(({ phase }) => phase === 'harness'));
  const { run = '' } = running[0] ?? {};
  expect((await at.command('daemon', 'cancel', run)).stdout).toContain('canceled 1 trial');
  await at.once(({ running, queued }) => running.length === 0 && queued === 0);
  const again = await at.command('daemon', 'cancel', run);
  expect(again).toMatchObject({ exitCode: 2 });
  expect(again.stderr).toContain('no open trial');
  expect((await at.command('daemon', 'cancel', 'batch_x')).stderr).toContain('a batch or run batch_x');
});

test('a queued run is canceled by its id, which the status lists', async () => {
  await at.tell('pause');
  await at.command('daemon', 'enqueue', suite('later', {}));
  const { queuedRuns } = await at.once(({ queuedRuns }) => queuedRuns.length === 1);
  const { run = '' } = queuedRuns[0] ?? {};
  const canceled = await at.command('daemon', 'cancel', run);
  const folder = `--data-folder ${at.place.dataFolder}`;
  expect(canceled.stdout).toContain(`\`offsite data abandon ${run} ${folder}\` reports them as void`);
  await at.tell('unpause');
});

describe('a batch of a daemon that works', () => {
  const two = [
    { id: 'one', verify: 'cat done.txt' },
    { id: 'two', verify: 'cat done.txt' },
  ];
  const queued = async (name: string, more: object = {}) => {
    await at.command('daemon', 'enqueue', suite(name, { cases: two, trials: 2, ...more }));
    const { queuedRuns } = await at.once((status) => status.queuedRuns.length === 2);
    return { batch: queuedRuns[0]?.batch ?? '', runs: queuedRuns.map(({ run }) => run) };
  };
  const statuses = async () =>
    [...(await at.runs('one')), ...(await at.runs('two'))].flatMap(({ trials = [] }) =>
      trials.map(({ status }) => status),
    );

  test('is canceled by its suite, a short id or a whole one, and `resume` says who continues it', async () => {
    await at.tell('pause');
    const { batch, runs } = await queued('whole');
    const bySuite = await at.command('daemon', 'cancel', 'whole');
    expect(bySuite.stdout, bySuite.stderr).toContain(`canceled 4 trials of batch ${batch} here`);
    const back = await at.command('resume', batch);
    expect(back).toMatchObject({ exitCode: 0, stdout: '' });
    expect(back.stderr).toContain(
      `batch ${batch}: the daemon of this data folder has it and is paused: \`offsite daemon resume\` lets it continue, 4 trials queued, 0 running\n`,
    );
    expect(back.stderr).not.toMatch(/resuming|another process/);
    await at.once((status) => status.queued === 4);
    const short = await at.command('daemon', 'cancel', batch.slice(0, 12));
    expect(short.stdout, short.stderr).toContain(`canceled 4 trials of batch ${batch} here`);
    const one = await at.command('resume', runs[0] ?? '');
    expect(one.stderr).toContain('lets it continue, 2 trials queued');
    await at.once((status) => status.queued === 2);

    const ended = await at.command('data', 'abandon', batch);
    expect(ended, ended.stderr).toMatchObject({
      exitCode: 0,
      stdout: `abandoned batch ${batch}: 4 open trials ended as void\n`,
    });
    expect(await statuses()).toEqual(['voided', 'voided', 'voided', 'voided']);
    await at.once((status) => status.queued === 0);
    expect((await at.command('data', 'abandon', batch)).stderr).toContain(`batch ${batch} is finished`);
    await at.tell('unpause');
  });

  test('ends for good while a trial of it runs, a run alone or all of it', { timeout: 90_000 }, async () => {
    await at.tell('pause');
    const { batch, runs } = await queued('for-good', { variants: [variant] });
    await at.tell('unpause');
    await at.once(({ running }) => running.some(({ phase }) => phase === 'harness'));
    const one = await at.command('data', 'abandon', runs[1] ?? '');
    expect(one.stdout, one.stderr).toBe(`abandoned run ${runs[1]}: 2 open trials ended as void\n`);
    const rest = await at.command('data', 'abandon', batch);
    expect(rest.stdout, rest.stderr).toBe(`abandoned batch ${batch}: 2 open trials ended as void\n`);
    expect(new Set(await statuses())).toEqual(new Set(['voided']));
    await at.once(({ running, queued: left }) => running.length + left === 0);
  });
});

test('its metrics say what it did', async () => {
  const text = await (await fetch(`${url}/metrics`)).text();
  expect(text).toMatch(/^offsite_trials_finished_total\{verdict="passed",cause="none"\} 2$/m);
  // A command that ends trials sends their reports too, and so may the daemon before it.
  const sent = /^offsite_reports_total\{outcome="sent"\} (\d+)$/m.exec(text)?.[1];
  expect(Number(sent)).toBeGreaterThanOrEqual(2);
  expect(text).toMatch(/^offsite_phase_seconds_count\{phase="harness"\} 2$/m);
  expect(text).toMatch(/^offsite_outbox_reports 0$/m);
  expect(text).toMatch(/^offsite_healthy 1$/m);
  expect(text).toMatch(/^offsite_ready 1$/m);
});

test('its status says what is prepared', async () => {
  const cases = [{ id: 'slow', prepare: 'sleep 100000', verify: 'cat done.txt' }];
  expect(await at.command('daemon', 'enqueue', suite('slow', { cases }))).toMatchObject({ exitCode: 0 });
  const { building } = await at.once(({ building }) => building.some(({ state }) => state === 'running'));
  expect(building).toMatchObject([{ what: 'prepare of slow' }]);
  expect((await at.command('daemon', 'status')).stdout).toMatch(/1 build:\n {2}prepare of slow {2}\d/);
  await at.command('daemon', 'cancel', 'slow');
  await at.once((status) => status.building.length + status.queued + status.running.length === 0);
});

describe('a run that was found at the service and canceled', () => {
  const canceled = async (id: string) => {
    await at.tell('pause');
    const [run = ''] = await at.queue([id], { suite: 'small' });
    await at.once(({ queued }) => queued === 1);
    const { stdout } = await at.command('daemon', 'cancel', run);
    const command = `offsite resume ${run} --data-folder ${at.place.dataFolder}`;
    expect(stdout).toContain(`\`${command}\` runs the canceled ones after all`);
    await at.tell('unpause');
    return run;
  };

  test('is taken again by the same daemon after `resume`', async () => {
    const run = await canceled('back');
    const resumed = await at.command('resume', run);
    expect(resumed, resumed.stderr).toMatchObject({ exitCode: 0 });
    expect(resumed.stderr).toContain('1 canceled trial');
    await expect.poll(() => trialStatus('back'), { timeout: 60_000 }).toBe('reported');
    expect((await at.command('resume', run)).stderr).not.toContain('canceled trial');
  });

  test('is not taken again by `resume` once somebody has ended it at the service', async () => {
    const run = await canceled('over');
    await at.endElsewhere(run, 'over');
    const resumed = await at.command('resume', run);
    expect(resumed, resumed.stderr).toMatchObject({ exitCode: 2 });
    expect(resumed.stderr).toContain(`run ${run} is finished: nothing is left to run`);
    expect((await at.once(() => true)).queued).toBe(0);
  });

  test('ends at the service as void after `data abandon`, while the daemon works', async () => {
    const run = await canceled('given-up');
    const ended = await at.command('data', 'abandon', run);
    expect(ended.stdout, ended.stderr).toContain(`abandoned run ${run}: 1 open trial ended as void`);
    await expect.poll(() => trialStatus('given-up')).toBe('voided');
    expect((await at.runs('given-up'))[0]?.distribution).toMatchObject({ voided: 1, failed: 0 });
  });

  test('is ended by `data abandon` of its batch without `daemon cancel`, while the daemon works', async () => {
    await at.tell('pause');
    const [run = ''] = await at.queue(['at-once'], { suite: 'small' });
    const { queuedRuns } = await at.once(({ queued }) => queued === 1);
    const { batch = '' } = queuedRuns.find((one) => one.run === run) ?? {};
    const ended = await at.command('data', 'abandon', batch);
    expect(ended.stdout, ended.stderr).toBe(`abandoned batch ${batch}: 1 open trial ended as void\n`);
    expect(await trialStatus('at-once')).toBe('voided');
    await at.tell('unpause');
  });

  test('does not count as claimed by another agent, so that no number of the status is wrong', async () => {
    await at.tell('pause');
    const [run = ''] = await at.queue(['claimed'], { suite: 'small' });
    await at.once(({ queued }) => queued === 1);
    await at.service.ask('evals.claimTrial', { id: run, ordinal: 0, agent: 'another', seconds: 60 });
    await at.tell('unpause');
    await at.once(({ claimedElsewhere }) => claimedElsewhere.length === 1);
    expect((await at.command('daemon', 'cancel', run)).exitCode).toBe(0);
    const { stdout } = await at.command('daemon', 'status');
    expect(stdout).toMatch(/^trials {4}0 queued, 0 of \d running/m);
    expect(stdout).not.toContain('claimed by other');
  });

  test('waits briefly while no trial can be claimed, and is not listed once another agent has ended it', async () => {
    at.service.down.add('evals.claimTrial');
    const [over = ''] = await at.queue(['over-elsewhere'], { suite: 'small' });
    await at.queue(['waits'], { suite: 'small' });
    const { waiting } = await at.once((status) => status.waiting.length === 2);
    for (const { askedAgainInMs } of waiting) expect(askedAgainInMs).toBeLessThanOrEqual(15_000);
    expect((await at.command('daemon', 'status')).stdout).toMatch(
      new RegExp(`over-elsewhere · ${over}  asked for again in \\S+ s  it cannot be claimed now: `),
    );
    await at.endElsewhere(over, 'over-elsewhere');
    await at.once((status) => status.waiting.every(({ run }) => run !== over));
    at.service.down.clear();
    const since = performance.now();
    await expect.poll(() => trialStatus('waits'), { timeout: 60_000 }).toBe('reported');
    expect(performance.now() - since).toBeLessThan(40_000);
  });

  test('is not said to run elsewhere once another machine has ended it', async () => {
    const run = await canceled('ended-elsewhere');
    await at.endElsewhere(run, 'ended-elsewhere');
    const here = await at.command('data', 'abandon', run);
    expect(here).toMatchObject({
      exitCode: 0,
      stdout: `abandoned run ${run}: 1 trial had ended elsewhere\n`,
    });
  });
});

test('drain ends it, and whoever asks then is told that there is none', async () => {
  expect((await at.command('daemon', 'drain')).stdout).toContain('draining');
  await expect.poll(() => existsSync(join(at.place.dataFolder, 'control.sock'))).toBe(false);
  const { exitCode, stderr } = await at.command('daemon', 'status');
  expect(exitCode).toBe(2);
  expect(stderr).toContain('no daemon runs in this data folder');
});

test('what was canceled can be run after all, or ended with a report', async () => {
  const batchOf = async (suite: string) => {
    const listed: { id: string; suite: string }[] = JSON.parse(
      (await at.command('data', 'batches', '--number', '100', '--json')).stdout,
    );
    return listed.find((one) => one.suite === suite)?.id ?? '';
  };
  const resumed = await at.command('resume', await batchOf('later'));
  expect(resumed, resumed.stderr).toMatchObject({ exitCode: 0 });
  expect(await trialStatus('later')).toBe('reported');

  expect(await trialStatus('endless')).not.toBe('voided');
  const ended = await at.command('data', 'abandon', await batchOf('endless'));
  expect(ended.stdout, ended.stderr).toContain('1 open trial ended as void');
  expect(await trialStatus('endless')).toBe('voided');
});
