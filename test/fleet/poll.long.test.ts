import { expect, test } from 'vitest';
import { folderStorage } from '../../src/fleet/storage/storage.ts';
import { held, letGo } from '../daemon/let-go.ts';
import { countFinished } from '../daemon/sharing.ts';
import { type FleetPlace, openFleetPlace } from './fleet-place.ts';

const soon = { timeout: 120_000, interval: 200 };

/** Writes a configuration that polls one suite, with the profile of the runs that {@link queue} starts. */
function configure(fleet: FleetPlace, { run = 'echo done > done.txt', daemon = {} } = {}): void {
  fleet.suite({
    cases: [],
    config: {
      profiles: { worker: { run } },
      daemon: {
        suites: ['small'],
        profiles: { command: 'worker' },
        poll: { min: '200ms', max: '2s' },
        ...daemon,
      },
    },
  });
}

/** Starts a batch as a dashboard would, one local run a case. Returns its runs' ids. */
async function queue(fleet: FleetPlace, caseIds: string[], trials = 1, more: object = {}): Promise<string[]> {
  const credentials = { harnessConnectionId: 'command', sandboxConnectionId: 'local' };
  const { runs } = (await fleet.service.ask('evals.start', {
    suite: { id: 'small', name: 'small', prompt: 'Do it.' },
    cases: caseIds.map((id) => ({ id, name: id, verify: 'cat done.txt' })),
    variants: [{ model: 'none', credentials, ...more }],
    trials,
    local: true,
  })) as { runs: { id: string }[] };
  return runs.map(({ id }) => id);
}

/** A suite for `fleet run`, with the configuration that {@link configure} writes. */
function ownSuite(fleet: FleetPlace, cases: object[], trials: number): string {
  const variants = [{ name: 'worker', model: 'none', harness: 'command', profile: 'worker' }];
  const suite = { suite: { id: 'small', prompt: 'Do it.' }, trials, variants, cases };
  return fleet.place.write('suite.yaml', JSON.stringify(suite));
}

async function statuses(fleet: FleetPlace, caseIds: string[]): Promise<string[]> {
  const runs = (await Promise.all(caseIds.map((id) => fleet.runs(id)))).flat();
  return runs.flatMap(({ trials = [] }) => trials.map(({ status }) => status));
}

/** How many trials the poll has started. */
async function startedBy(fleet: FleetPlace): Promise<number | undefined> {
  const { stdout } = await fleet.command(['status', '--json']).ended;
  return JSON.parse(stdout).poll.state?.started;
}

const allReported = (count: number) => Array.from({ length: count }, () => 'reported');

test('the fleet runs what others queue, and each trial once, though a worker that polls is killed', async () => {
  await using fleet = await openFleetPlace();
  configure(fleet);
  const names = ['one', 'two'];
  const workers = await Promise.all(names.map((name) => fleet.worker(name, ['-c', '2'])));
  await queue(fleet, ['a', 'b', 'c'], 4);
  const started = await fleet.command(['poll']).ended;
  expect(started.exitCode, started.stderr).toBe(0);
  expect(started.stdout).toContain('the fleet polls 1 suite and 0 cases');
  const again = await fleet.command(['poll']).ended;
  expect(again.exitCode).toBe(2);
  expect(again.stderr).toContain('the fleet polls already');
  const done = async () => (await statuses(fleet, ['a', 'b', 'c'])).filter((one) => one === 'reported');
  for (const [index, count] of [3, 7].entries()) {
    await expect.poll(async () => (await done()).length, soon).toBeGreaterThanOrEqual(count);
    workers[index]?.kill('SIGKILL');
    await workers[index]?.ended;
    workers[index] = await fleet.worker(names[index] ?? '', ['-c', '2']);
  }
  await queue(fleet, ['d'], 2);
  await expect.poll(() => statuses(fleet, ['a', 'b', 'c', 'd']), soon).toEqual(allReported(14));
  const status = (await fleet.command(['status']).ended).stdout;
  expect(status).toMatch(
    /polls for queued runs: suite small\n {2}5 targets, looked .* ago, 14 trials started/,
  );
  const stopped = await fleet.command(['poll', '--stop']).ended;
  expect(stopped.stdout).toContain('no longer polls');
  expect((await fleet.command(['status']).ended).stdout).toContain('no poll for queued runs');
  expect((await fleet.command(['poll', '--stop']).ended).stdout).toContain('does not poll');
  for (const worker of workers) worker.kill('SIGTERM');
  await Promise.all(workers.map(({ ended }) => ended));
  const { twice, finished } = countFinished(names.map((name) => fleet.folderOf(name)));
  expect({ twice, finished: finished.reduce((sum, one) => sum + one, 0) }).toEqual({
    twice: 0,
    finished: 14,
  });
}, 400_000);

test('while the service is down the poll waits, says so, and goes on afterwards', async () => {
  await using fleet = await openFleetPlace();
  configure(fleet);
  await fleet.worker('one', ['-c', '2']);
  fleet.service.down.add('evals.cases.list');
  fleet.service.down.add('evals.runs.list');
  expect((await fleet.command(['poll']).ended).exitCode).toBe(0);
  await queue(fleet, ['a']);
  const status = async () => (await fleet.command(['status']).ended).stdout;
  await expect.poll(status, soon).toMatch(/suite small: .*down for repairs/);
  const asked = () => fleet.service.asked.filter((operation) => operation === 'evals.cases.list').length;
  const before = asked();
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  // The wait doubles from 200 ms to two seconds. Without that there would be 25.
  expect(asked() - before).toBeLessThanOrEqual(10);
  fleet.service.down.clear();
  await expect.poll(() => statuses(fleet, ['a']), soon).toEqual(['reported']);
  await expect.poll(status, soon).not.toContain('down for repairs');
});

test('a daemon and the fleet share what others queue, and leave the batches of the fleet to it', async () => {
  await using fleet = await openFleetPlace();
  configure(fleet);
  const daemonFolder = `${fleet.place.folder}/daemon`;
  const worker = await fleet.worker('one', ['-c', '2']);
  expect((await fleet.command(['poll']).ended).exitCode).toBe(0);
  const daemon = fleet.begin(['daemon', '-c', '1'], {}, daemonFolder);
  await daemon.printed(/the daemon is working/);
  await queue(fleet, ['a', 'b'], 6);
  await expect.poll(() => statuses(fleet, ['a', 'b']), soon).toEqual(allReported(12));
  for (const one of [daemon, worker]) one.kill('SIGTERM');
  await Promise.all([daemon.ended, worker.ended]);
  const shared = countFinished([fleet.folderOf('one'), daemonFolder]);
  expect(shared.twice).toBe(0);
  const [byFleet = 0, byDaemon = 0] = shared.finished;
  expect(byFleet + byDaemon).toBe(12);
}, 400_000);

test('what somebody spoiled in the storage holds back the runs of its batch alone', async () => {
  await using fleet = await openFleetPlace();
  configure(fleet);
  const [run] = await queue(fleet, ['a']);
  const [spoiled] = (await fleet.runs('a')).filter(({ id }) => id === run);
  const storage = folderStorage(`${fleet.place.folder}/storage`);
  await storage.putNote('batches', spoiled?.batchId ?? '', { document: 'no hash' });
  await queue(fleet, ['b']);
  await fleet.worker('one', ['-c', '1']);
  expect((await fleet.command(['poll']).ended).exitCode).toBe(0);
  await expect.poll(() => statuses(fleet, ['b']), soon).toEqual(['reported']);
  const status = async () => (await fleet.command(['status']).ended).stdout;
  await expect.poll(status, soon).toMatch(/the plan of their batch cannot be read: .* it names no plan/);
  expect(await statuses(fleet, ['a'])).toEqual(['queued']);
});

test('the poll leaves the runs of a batch of the fleet to its workflow', async () => {
  await using fleet = await openFleetPlace();
  configure(fleet, { run: held });
  const file = ownSuite(fleet, [{ id: 'a', verify: 'cat done.txt' }], 2);
  await fleet.worker('one', ['-c', '1']);
  expect((await fleet.command(['poll']).ended).exitCode).toBe(0);
  const batch = await fleet.started(file, '--window', '1');
  const [own = ''] = (await fleet.runs('a')).map(({ id }) => id);
  const [other = ''] = await queue(fleet, ['b']);
  const found = () => startedBy(fleet);
  // The run of the other batch is found. That of the fleet's own has a queued trial, and is not.
  await expect.poll(found, soon).toBe(1);
  const ended = async () => {
    for (const run of [own, other]) await letGo(run);
    return statuses(fleet, ['a', 'b']);
  };
  await expect.poll(ended, soon).toEqual(allReported(3));
  const outcome = await fleet.client.workflow.getHandle(batch).result();
  expect(outcome).toMatchObject({ passed: 2, elsewhere: 0 });
  expect(await found()).toBe(1);
});

test('the poll leaves runs that a rerun adds to a batch to their workflow', async () => {
  await using fleet = await openFleetPlace();
  configure(fleet);
  const file = ownSuite(fleet, [{ id: 'a', prepare: 'exit 1', verify: 'cat done.txt' }], 6);
  await fleet.worker('one', ['-c', '1']);
  expect((await fleet.command(['poll']).ended).exitCode).toBe(0);
  const batch = await fleet.started(file);
  const voided = (count: number) => Array.from({ length: count }, () => 'voided');
  await expect.poll(() => statuses(fleet, ['a']), soon).toEqual(voided(6));
  // Its trials are queued at the service for some looks of the poll.
  const again = await fleet.command(['rerun', batch, '--window', '1', '--detach', '--json']).ended;
  expect(again.exitCode, again.stderr).toBe(0);
  const outcome = await fleet.client.workflow.getHandle(JSON.parse(again.stdout).rerun).result();
  expect(outcome).toMatchObject({ void: 6, elsewhere: 0 });
  await expect.poll(() => statuses(fleet, ['a']), soon).toEqual(voided(12));
  await queue(fleet, ['b']);
  await expect.poll(() => statuses(fleet, ['b']), soon).toEqual(['reported']);
  expect(await startedBy(fleet)).toBe(1);
});
