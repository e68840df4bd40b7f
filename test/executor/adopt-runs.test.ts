import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runners } from '../../runners/index.ts';
import { storedPlan } from '../../src/agent/batch-run.ts';
import { Delivery } from '../../src/agent/delivery.ts';
import { adoptRun, recoverStarts } from '../../src/agent/executor/executor.ts';
import { platformSender } from '../../src/agent/sender.ts';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { platformLock, platformService } from '../../src/ledger/platform.ts';
import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import { type SuitePlan, startRequest } from '../../src/suite/plan.ts';
import { offsite } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';
import { testPlatform, trialRecord } from '../service/test-platform.ts';
import { openTestService, startRequest as smallRequest, type TestService } from '../service/test-service.ts';

const scope = { service: platformService, lock: platformLock };

let place: Place;
let folder: string;
let ledger: Ledger;
let service: TestService;
beforeEach(() => {
  place = openPlace();
  folder = mkdtempSync(join(tmpdir(), 'offsite-executor-'));
  ledger = new Ledger(folder, systemClock);
  service = openTestService(undefined, testPlatform());
});
afterEach(async () => {
  await service[Symbol.asyncDispose]();
  ledger[Symbol.dispose]();
  rmSync(folder, { recursive: true });
  place[Symbol.dispose]();
});

const platformRequest = (change = {}) => smallRequest({ local: undefined, trials: 3, ...change });
const queued = () => ledger.queue.next(scope, 100).map(({ runId, ordinal }) => [runId, ordinal]);
const claimAll = async (from = service) => {
  for (const run of from.service.platform.openRuns()) expect(await adoptRun(run, ledger)).toBe(true);
};

/** Ends an own attempt at the oldest queued trial. */
async function finishNext() {
  const [next] = ledger.queue.next(scope, 1);
  if (!next) throw new Error('nothing is queued');
  const attempt = ledger.trials.beginAttempt(next.key);
  const report = {
    caseName: 'CSV',
    ordinal: next.ordinal,
    taskIndex: 0,
    events: [],
    outcome: { passed: true },
  };
  await ledger.trials.finish(attempt, { verdict: 'passed', result: trialRecord(), report });
}

/** Hands over everything in the outbox. Returns the outcomes. */
async function handOver(to = service) {
  const outcomes: string[] = [];
  await using delivery = new Delivery({
    ledger,
    sender: platformSender(ledger, to.service.platform),
    clock: systemClock,
    service: platformService,
    observe: (_, { state }) => outcomes.push(state),
    note: () => undefined,
  });
  await delivery.drain({ ms: 0, failures: 1 });
  return outcomes;
}

test('a run is queued once, without the trials that have ended, and with what its case says beside its setup', async () => {
  const cases = [
    {
      id: 'csv',
      name: 'CSV',
      variables: { who: 'me' },
      verify: 'test {{who}}',
      validator: { name: 'v', source: 'x', manifest: [{ index: 0, name: 'one' }], capture: false },
    },
  ];
  const { runs } = await service.succeed('evals.start', platformRequest({ cases }));
  const id = runs[0]?.id ?? '';
  await service.service.platform.complete(id, 1, trialRecord());
  await claimAll();
  await claimAll();
  expect(queued()).toEqual([
    [id, 0],
    [id, 2],
  ]);
  const [trial] = ledger.queue.next(scope, 1);
  expect(JSON.parse(trial?.memory ?? '')).toMatchObject({
    variant: { model: 'small' },
    definition: {
      variables: { who: 'me' },
      validator: { manifest: [{ index: 0, name: 'one' }], capture: false },
    },
  });
  expect(ledger.blobs.readJson(trial?.setup ?? '')).toMatchObject({ verify: 'test me' });
});

test('a result is handed over once: again after a crash before the ledger noted it, and after the service lost it', async () => {
  await service.succeed('evals.start', platformRequest());
  await claimAll();
  await finishNext();
  const [report] = ledger.outbox.pending();
  // The process died between the service's commit and the ledger's.
  await service.service.platform.complete(report?.runId ?? '', 0, trialRecord());
  expect(await handOver()).toEqual(['delivered']);
  await claimAll();
  expect(ledger.outbox.pending()).toEqual([]);
  expect(service.service.platform.openRuns()[0]?.ended).toEqual([0]);

  // The service's database is an older one, in which the trial has not ended.
  const [run] = service.service.platform.openRuns();
  if (!run) throw new Error('the run is over');
  expect(await adoptRun({ ...run, ended: [] }, ledger)).toBe(true);
  expect(ledger.outbox.pending()).toMatchObject([{ ordinal: 0, report: 'queued' }]);
  expect(await handOver()).toEqual(['delivered']);

  // And the other way round: the service has a result that the ledger has not.
  expect(await adoptRun({ ...run, ended: [0, 1] }, ledger)).toBe(true);
  expect(queued().map(([, ordinal]) => ordinal)).toEqual([2]);

  // Then its database is an older one again: nobody has a result of the trial, so that it runs.
  expect(await adoptRun({ ...run, ended: [0] }, ledger)).toBe(true);
  expect(queued().map(([, ordinal]) => ordinal)).toEqual([1, 2]);
});

/** The plan of a suite with what no request can carry. */
function planned(): SuitePlan {
  const file = place.suite({
    cases: [
      { id: 'a', verify: 'true', artifacts: ['out.txt'] },
      { id: 'b', verify: 'true' },
    ],
    trials: 2,
  });
  const config = loadConfig({ named: join(place.folder, 'project', 'offsite.yaml'), env: {} });
  return loadSuite(file, config, runners);
}

/** What `offsite service start` has on disk when it asks the service. */
async function starting(plan: SuitePlan) {
  const lock = ledger.takeLock('batch-of-a-command');
  if (!lock) throw new Error('the lock is taken');
  const blob = await ledger.blobs.putJson(storedPlan(plan));
  const { name: suite } = plan.suite;
  ledger.starts.add({ service: platformService, suite, file: plan.file, plan: blob, lock: lock.name });
  return lock;
}

test('while a command is starting a batch, nobody runs it without its plan; if the command dies, its plan is found', async () => {
  const plan = planned();
  const command = await starting(plan);
  // Somebody else's batch of the same suite, which the plan does not fit.
  const other = startRequest({ ...plan, trials: 1 }, 'platform');
  await service.succeed('evals.start', other);
  const { id } = await service.succeed('evals.start', startRequest(plan, 'platform'));
  const { platform } = service.service;

  recoverStarts(platform, ledger);
  for (const run of platform.openRuns()) expect(await adoptRun(run, ledger)).toBe(false);
  expect(queued()).toEqual([]);

  command[Symbol.dispose]();
  recoverStarts(platform, ledger);
  await claimAll();
  const [batch] = ledger.batches.find(id);
  expect(batch).toMatchObject({ service: platformService, plan: expect.any(String) });
  expect(queued()).toHaveLength(6);
  expect(ledger.starts.open()).toEqual([]);
  const ofBatch = ledger.queue.next({ ...scope, batch: batch?.key }, 100);
  expect(ofBatch.map(({ origin, caseId, ordinal }) => [origin, caseId, ordinal])).toEqual([
    ['planned', 'a', 0],
    ['planned', 'a', 1],
    ['planned', 'b', 0],
    ['planned', 'b', 1],
  ]);
});

test('a command that died before the service had its batch leaves nothing to wait for', async () => {
  const command = await starting(planned());
  command[Symbol.dispose]();
  await service.succeed('evals.start', platformRequest());
  recoverStarts(service.service.platform, ledger);
  await claimAll();
  expect(queued()).toHaveLength(3);
  expect(ledger.starts.open()).toEqual([]);
});

test('a result that a dead command left in the outbox is handed over by outbox send', async () => {
  const before = openTestService(folder, testPlatform());
  await before.succeed('evals.start', platformRequest());
  await claimAll(before);
  await finishNext();
  await before.service.close();
  const sent = await offsite(place, ['data', 'outbox', 'send'], { dataFolder: folder });
  expect(sent.exitCode, sent.stderr).toBe(0);
  expect(ledger.outbox.pending()).toEqual([]);
  const after = openTestService(folder);
  expect(after.service.platform.openRuns()).toMatchObject([{ ended: [0] }]);
  await after.service.close();
});

test('a start whose plan is lost keeps no batch from running', async () => {
  const command = await starting(planned());
  const [start] = ledger.starts.open();
  rmSync(ledger.blobs.pathOf(start?.plan ?? ''));
  command[Symbol.dispose]();
  await service.succeed('evals.start', platformRequest());
  recoverStarts(service.service.platform, ledger);
  await claimAll();
  expect(queued()).toHaveLength(3);
  expect(ledger.starts.open()).toEqual([]);
});
