import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runners } from '../../runners/index.ts';
import { storedPlan } from '../../src/agent/batch-run.ts';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { newSetId, type SetPart, type StoredSet } from '../../src/ledger/sets.ts';
import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import { harmIn, hostileName } from '../hostile/hostile-text.ts';
import { openFlakyService } from './flaky-service.ts';
import { offsite, start } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

/** Milliseconds; only a hang reaches them. */
const timeout = 180_000;

/** A set of parts with one case each, of which none was started: its process was killed just then. */
async function plannedSet(place: Place, ids: string[], service = 'embedded'): Promise<StoredSet> {
  const cases = ids.map((id) => ({
    id,
    verify: `test -e ${id}`,
    variables: { act: `touch a; touch ${id}` },
  }));
  const suite = place.suite({ cases });
  const config = loadConfig({ named: suite.replace('suite.yaml', 'offsite.yaml'), env: {} });
  const plan = loadSuite(suite, config, runners);
  using ledger = new Ledger(place.dataFolder, systemClock);
  const plans: string[] = [];
  for (const one of plan.cases) plans.push(await ledger.blobs.putJson(storedPlan({ ...plan, cases: [one] })));
  return ledger.sets.add({ id: newSetId(), service, suite: 'small', file: suite, plans });
}

function ledgerParts(place: Place, { key }: StoredSet): SetPart[] {
  using ledger = new Ledger(place.dataFolder, systemClock);
  return ledger.sets.parts(key);
}

test('a set goes on with the batches that were never started, and all commands know it', {
  timeout,
}, async () => {
  using place = openPlace();
  const set = await plannedSet(place, ['a', 'b', 'c']);
  const listed = await offsite(place, ['data', 'batches']);
  expect(listed.stdout).toContain(`${set.id} of small: 3 of 3 batches not started`);

  // Killed with SIGKILL when the first batch is done.
  const killed = start(place, ['resume', '-c', '1']);
  await killed.printed(/✓ a/);
  await killed.printed(new RegExp(`batch 2 of 3 of ${set.id}`));
  killed.kill('SIGKILL');
  await killed.ended;
  const [first] = ledgerParts(place, set);
  const shown = await offsite(place, ['show', set.id.slice(0, 12)]);
  expect(shown.stdout).toMatch(new RegExp(`^${set.id}, small, .*batches? not started`));
  expect(shown.stdout).toMatch(/^3 +not started$/m);
  expect(shown.stdout).toContain(`continue: offsite resume ${set.id}`);

  const junit = join(place.folder, 'set.xml');
  const resumed = await offsite(place, ['resume', first?.batch?.id ?? '', '--json', '--junit', junit]);
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  const batchIds = ledgerParts(place, set).map(({ batch }) => batch?.id);
  expect(JSON.parse(resumed.stdout)).toMatchObject([{ set: set.id, passed: 3, unreported: 0, batchIds }]);
  const xml = readFileSync(junit, 'utf8');
  expect(xml).toContain(`name="${set.id}" tests="3"`);

  const table = await offsite(place, ['data', 'batches']);
  expect(table.stdout).toMatch(new RegExp(`2 of 3 of ${set.id}`));
  expect(table.stdout).not.toContain('not started');
  const batch = await offsite(place, ['show', batchIds[1] ?? '']);
  expect(batch.stdout).toContain(`small, 2 of 3 of ${set.id}`);
  const whole = await offsite(place, ['show', set.id, '--json']);
  expect(JSON.parse(whole.stdout)).toMatchObject({
    set: set.id,
    passed: 3,
    parts: [1, 2, 3].map((number) => ({ number, state: 'finished', left: 0 })),
  });
  const compared = await offsite(place, ['compare', batchIds[0] ?? '', set.id]);
  expect(compared.stderr).toContain(`${set.id} are the same trials, of the variant worker`);
  const again = await offsite(place, ['resume', set.id]);
  expect([again.exitCode, again.stderr]).toEqual([2, expect.stringContaining(`${set.id} is finished`)]);
});

test('of an abandoned set no other batch starts', { timeout }, async () => {
  using place = openPlace();
  const set = await plannedSet(place, ['a', 'b', 'c']);
  const killed = start(place, ['resume', '-c', '1']);
  await killed.printed(new RegExp(`batch 2 of 3 of ${set.id}`));
  killed.kill('SIGKILL');
  await killed.ended;
  const { exitCode, stdout, stderr } = await offsite(place, ['data', 'abandon', set.id.slice(0, 12)]);
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(new RegExp(`^abandoned ${set.id}: .*[12] of its batches will not be started\n$`));
  const [first, , last] = ledgerParts(place, set).map(({ batch }) => batch?.state);
  expect([first, last]).toEqual(['finished', undefined]);
  expect((await offsite(place, ['resume'])).stdout).toMatch(/^nothing to resume in \S+\n$/);
  expect((await offsite(place, ['data', 'batches'])).stdout).not.toContain('not started');
});

test('a batch whose start got no answer is not started again by a guess; the others of its set run', {
  timeout,
}, async () => {
  using place = openPlace();
  await using service = await openFlakyService(place);
  const { env } = service;
  const set = await plannedSet(place, ['a', 'b'], env.OFFSITE_URL);
  {
    using ledger = new Ledger(place.dataFolder, systemClock);
    const [{ key: part, plan } = { key: 0, plan: '' }] = ledger.sets.parts(set.key);
    const asked = { service: env.OFFSITE_URL, suite: 'small', file: undefined, plan, lock: 'batch-1', part };
    ledger.starts.add(asked);
  }
  const starts = () => service.asked.filter((operation) => operation === 'evals.start').length;
  const resumed = await offsite(place, ['resume'], { env });
  expect([resumed.exitCode, starts()], resumed.stderr).toEqual([3, 1]);
  expect(resumed.stderr).toContain('it is unknown whether the service started batch 1');
  expect(resumed.stdout).toMatch(/b · worker\s+1\s+0\s+0/);
  const ended = await offsite(place, ['resume', set.id, '--start-again', '--json'], { env });
  expect([ended.exitCode, starts()], ended.stderr).toEqual([0, 2]);
  expect(JSON.parse(ended.stdout)).toMatchObject([{ set: set.id, passed: 2 }]);
});

test('a batch that the service started, before the ledger could know, is found and not started again', {
  timeout,
}, async () => {
  using place = openPlace();
  await using service = await openFlakyService(place);
  const { env } = service;
  const set = await plannedSet(place, ['a', 'b'], env.OFFSITE_URL);
  // Killed when the service has acted, before its answer is sent.
  service.alter = (operation, body) => {
    if (operation === 'evals.start') running.kill('SIGKILL');
    return body;
  };
  const running = start(place, ['resume'], { env });
  expect((await running.ended).signal).toBe('SIGKILL');
  service.alter = undefined;
  const [before] = ledgerParts(place, set);
  expect([before?.start?.state, before?.batch]).toEqual(['asking', undefined]);
  const resumed = await offsite(place, ['resume', '--json'], { env });
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  expect(JSON.parse(resumed.stdout)).toMatchObject([{ set: set.id, passed: 2, unreported: 0 }]);
  expect(service.asked.filter((operation) => operation === 'evals.start')).toHaveLength(2);
  for (const caseId of ['a', 'b'])
    expect(await service.ask('evals.runs.list', { caseId })).toMatchObject({ total: 1 });
});

test('the name of a suite of others steers no terminal where its set is listed, shown and continued', {
  timeout,
}, async () => {
  using place = openPlace();
  {
    using ledger = new Ledger(place.dataFolder, systemClock);
    const plan = await ledger.blobs.putJson('no plan');
    const service = 'https://evals.example';
    ledger.sets.add({ id: 'set_1', service, suite: hostileName, file: hostileName, plans: [plan, plan] });
  }
  const args = [
    ['data', 'batches'],
    ['data', 'batches', '--json'],
    ['show', 'set_1'],
    ['resume', 'set_1'],
    ['resume'],
  ];
  const ended = await Promise.all(args.map((each) => offsite(place, each)));
  expect(ended.flatMap(({ stdout, stderr }) => [...harmIn(stdout), ...harmIn(stderr)])).toEqual([]);
  expect(ended[0]?.stdout).toContain('2 of 2 batches not started: offsite resume set_1');
  expect(ended.slice(3).map(({ exitCode, stderr }) => [exitCode, stderr.includes('evals.example')])).toEqual([
    [2, true],
    [2, true],
  ]);
});
