import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { DaemonStatus } from '../../src/agent/daemon/status.ts';
import { askDaemon } from '../../src/cli/daemon/ask-daemon.ts';
import type { RunsResponse } from '../../src/contract/record.ts';
import { openFlakyService } from '../cli/flaky-service.ts';
import { offsite, start } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';
import { freePort } from '../free-port.ts';
import { type DaemonPlace, openDaemonPlace } from './daemon-place.ts';
import { held, letGo } from './let-go.ts';
import { countFinished, shareSuite } from './sharing.ts';

const soon = { timeout: 60_000, interval: 100 };

/** Where another daemon keeps what it knows. */
const otherFolder = (at: DaemonPlace) => join(at.place.folder, 'other');

/** Resolves once the daemon of a data folder runs the agent of a trial. */
async function worksIn(folder: string): Promise<void> {
  const phase = async () => {
    const { running } = (await askDaemon(folder, 'GET', '/status')) as DaemonStatus;
    return running[0]?.phase;
  };
  await expect.poll(phase, soon).toBe('harness');
}

async function trialStatus(at: DaemonPlace, caseId: string): Promise<string | undefined> {
  return (await at.runs(caseId))[0]?.trials?.[0]?.status;
}

test('two daemons that are killed now and then run each trial of a suite to the end once', async () => {
  using place = openPlace();
  await using service = await openFlakyService(place);
  const sharing = { cases: 4, trials: 5, kills: 3, lease: '60s', concurrency: 2, timeoutMs: 200_000 };
  const shared = await shareSuite(place, service, sharing);
  expect(shared).toMatchObject({ kills: 3, recorded: 20, twice: 0 });
  const [one = 0, other = 0] = shared.finished;
  expect(one + other).toBe(20);
  expect(Math.min(one, other)).toBeGreaterThan(0);
});

test('another daemon takes over the trial of one that died, once its claim is over', async () => {
  await using at = await openDaemonPlace();
  at.configure({ profiles: { worker: { run: held } }, advanced: { lease: '3s' } });
  const [run = ''] = await at.queue(['orphan']);
  const first = await at.daemon();
  await worksIn(at.place.dataFolder);
  expect(await trialStatus(at, 'orphan')).toBe('running');
  first.kill('SIGKILL');
  await first.ended;
  await at.daemon([], {}, otherFolder(at));
  await worksIn(otherFolder(at));
  await letGo(run);
  await expect.poll(() => trialStatus(at, 'orphan'), soon).toBe('reported');
  expect(countFinished([at.place.dataFolder])).toMatchObject({ finished: [0] });
});

test('a daemon that was away for too long leaves its trial to the one that has it', async () => {
  await using at = await openDaemonPlace();
  at.configure({ profiles: { worker: { run: held } }, advanced: { lease: '2s' } });
  const [run = ''] = await at.queue(['frozen']);
  const frozen = await at.daemon();
  await worksIn(at.place.dataFolder);
  frozen.kill('SIGSTOP');
  await at.daemon([], {}, otherFolder(at));
  await worksIn(otherFolder(at));
  frozen.kill('SIGCONT');
  await frozen.printed(/lost a running trial to another agent/);
  await at.once(({ running }) => running.length === 0);
  const status = async () => (await at.command('daemon', 'status')).stdout;
  await expect
    .poll(status, soon)
    // It is counted once.
    .toMatch(
      /^(?!.*queued run:).*1 trial that cannot be claimed now:\n {2}frozen · \S+ #0 {2}asked for again in \d.*: The agent .* has claimed the trial until /s,
    );
  await letGo(run);
  await expect.poll(() => trialStatus(at, 'frozen'), soon).toBe('reported');
  // Then it has nothing more to do with it.
  await at.once(({ queued, running, outbox }) => queued + running.length + outbox.queued === 0);
  expect((await at.command('daemon', 'drain')).exitCode).toBe(0);
  await frozen.ended;
  expect(countFinished([at.place.dataFolder])).toEqual({ finished: [0], twice: 0, invalid: 1 });
});

test('a daemon that is told to stop gives its trial back at once', async () => {
  await using at = await openDaemonPlace();
  at.configure({ profiles: { worker: { run: held } }, advanced: { lease: '1h' } });
  const [run = ''] = await at.queue(['returned']);
  const first = await at.daemon();
  await worksIn(at.place.dataFolder);
  first.kill('SIGTERM');
  await first.printed(/the daemon is draining/);
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  first.kill('SIGTERM');
  await first.ended;
  expect(await trialStatus(at, 'returned')).toBe('queued');
  await at.daemon([], {}, otherFolder(at));
  await worksIn(otherFolder(at));
  await letGo(run);
  await expect.poll(() => trialStatus(at, 'returned'), soon).toBe('reported');
});

test('offsite run shares its batch with a daemon that watches its suite, and waits for what that runs', async () => {
  await using at = await openDaemonPlace();
  at.configure({ concurrency: 1, advanced: { lease: '60s' } });
  const daemon = await at.daemon([], {}, otherFolder(at));
  const cases = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ({ id, verify: 'cat done.txt' }));
  // The daemon knows the cases only after they were started once.
  await at.queue(cases.map(({ id }) => id));
  const worker = { name: 'worker', model: 'none', harness: 'command', profile: 'worker', sandbox: 'local' };
  const suite = { suite: { id: 'small', prompt: 'Do it.' }, trials: 2, variants: [worker], cases };
  const file = at.place.write('shared.json', JSON.stringify(suite));
  const running = start(
    at.place,
    ['run', file, '--config', join(at.place.folder, 'project', 'offsite.yaml')],
    { env: at.service.env },
  );
  const { exitCode, stderr } = await running.ended;
  expect(exitCode, stderr).toBe(0);
  for (const { id } of cases) {
    const [own] = await at.runs(id);
    expect(own?.trials?.map(({ status }) => status)).toEqual(['reported', 'reported']);
  }
  await expect.poll(() => trialStatus(at, 'f'), soon).toBe('reported');
  daemon.kill('SIGTERM');
  await daemon.ended;
  // The 6 trials that were queued before, and the 12 of the batch.
  const { finished, twice } = countFinished([at.place.dataFolder, otherFolder(at)]);
  expect(finished.reduce((sum, count) => sum + count)).toBe(18);
  expect(twice).toBe(0);
});

test('nothing that two daemons finished runs again after their service was restored from a backup', async () => {
  using place = openPlace();
  const config = place.write(
    'offsite.yaml',
    JSON.stringify({
      profiles: { worker: { run: 'echo done > done.txt' } },
      sandboxes: { local: { memory: '256m' } },
      concurrency: 1,
      daemon: { suites: ['small'], profiles: { command: 'worker' }, poll: { min: '200ms', max: '2s' } },
    }),
  );
  const [dataFolder, backup] = ['service', 'backup'].map((name) => join(place.folder, name)) as [
    string,
    string,
  ];
  const folders = ['one', 'other', 'late'].map((name) => join(place.folder, name));
  const port = await freePort();
  const env = { OFFSITE_URL: `http://127.0.0.1:${port}`, OFFSITE_API_KEY: 'ofs_of-these-daemons' };
  const serve = async () => {
    const serving = start(place, ['serve', '--no-executor', '--port', `${port}`], { env, dataFolder });
    await serving.printed(/Eval Service at/);
    return serving;
  };
  const begin = (folder = '') => start(place, ['daemon', '--config', config], { env, dataFolder: folder });
  const ask = async (operation: string, body: object) => {
    const headers = { authorization: `Bearer ${env.OFFSITE_API_KEY}`, 'content-type': 'application/json' };
    const request = { method: 'POST', headers, body: JSON.stringify(body) };
    return (await fetch(`${env.OFFSITE_URL}/v1/${operation}`, request)).json();
  };
  const open = async () => {
    const { runs } = (await ask('evals.runs.list', { caseId: 'kept' })) as RunsResponse;
    return runs[0]?.trials?.filter(({ status }) => status !== 'reported').length;
  };
  let serving = await serve();
  const daemons = folders.slice(0, 2).map(begin);
  try {
    const credentials = { harnessConnectionId: 'command', sandboxConnectionId: 'local' };
    await ask('evals.start', {
      suite: { id: 'small', name: 'small', prompt: 'Do it.' },
      cases: [{ id: 'kept', name: 'kept', verify: 'cat done.txt' }],
      variants: [{ model: 'none', credentials }],
      trials: 8,
      local: true,
    });
    const { exitCode, stderr } = await offsite(place, ['data', 'backup', backup], { env, dataFolder });
    expect(exitCode, stderr).toBe(0);
    await expect.poll(open, soon).toBe(0);
    const before = countFinished(folders.slice(0, 2));
    expect(Math.min(...before.finished)).toBeGreaterThan(0);
    serving.kill('SIGTERM');
    await serving.ended;
    rmSync(dataFolder, { recursive: true });
    renameSync(backup, dataFolder);
    serving = await serve();
    await serving.printed(/restored from a backup/);
    // This one knows nothing of what the others have.
    const late = begin(folders[2]);
    daemons.push(late);
    await late.printed(/took up a run/);
    await expect.poll(open, soon).toBe(0);
    for (const daemon of daemons) daemon.kill('SIGTERM');
    await Promise.all(daemons.map(({ ended }) => ended));
    expect(countFinished(folders)).toEqual({ ...before, finished: [...before.finished, 0] });
  } finally {
    for (const running of [...daemons, serving]) running.kill('SIGKILL');
    await Promise.all([...daemons, serving].map(({ ended }) => ended));
  }
});
