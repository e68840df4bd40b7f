import { expect, test } from 'vitest';
import { isUnclear, mayHaveWork, syncRun } from '../../src/agent/daemon/found-run.ts';
import { namedRuns } from '../../src/agent/daemon/named-runs.ts';
import { leaveEnded } from '../../src/agent/reconcile.ts';
import type { Client } from '../../src/client/client.ts';
import type { RunRecord } from '../../src/contract/record.ts';
import { daemonLock } from '../../src/ledger/queue.ts';
import { eachLedger, ledger } from '../ledger/each-ledger.ts';

eachLedger();

const service = 'there';

/** A listed run whose trials have these statuses. */
function listed(...statuses: string[]): RunRecord {
  const trials = statuses.map((status, ordinal) => ({ id: `t${ordinal}`, ordinal, status }));
  return { id: 'run_1', batchId: 'batch_1', local: true, status: 'running', trials };
}

const sync = async (record: RunRecord) => (await syncRun(record, 'a', { ledger, service, mayAdopt: true }))();
const queued = () =>
  ledger.queue.next({ service, lock: daemonLock }, 10).map(({ key, ordinal }) => ({ key, ordinal }));
const ordinals = () => queued().map(({ ordinal }) => ordinal);

test('a trial that another agent has is passed over, and queued when it comes back', async () => {
  expect(await sync(listed('running', 'queued'))).toBe(true);
  expect(ordinals()).toEqual([1]);
  expect(await sync(listed('running', 'queued'))).toBe(false);
  expect(await sync(listed('queued', 'queued'))).toBe(true);
  expect(ordinals().sort()).toEqual([0, 1]);
  expect(await sync(listed('queued', 'reported'))).toBe(false);
  expect(ordinals()).toEqual([0]);
});

test('a run that was over here is open again when one of its trials comes back', async () => {
  await sync(listed('running', 'queued'));
  ledger.queue.withdraw(
    queued().map(({ key }) => key),
    'elsewhere',
  );
  expect(await sync(listed('queued', 'reported'))).toBe(true);
  expect(ordinals()).toEqual([0]);
  const state = ledger.records.get('SELECT runs.state, batches.state AS batch FROM runs JOIN batches');
  expect(state).toEqual({ state: 'started', batch: 'open' });
});

test('a result that was superseded is sent again when the service lists its trial without one', async () => {
  await sync(listed('queued', 'queued'));
  const [{ key = 0 } = {}] = queued();
  const attempt = ledger.trials.beginAttempt(key);
  const finished = { verdict: 'passed', result: { number: 1 }, report: { ordinal: 0 }, lease: 1 } as const;
  await ledger.trials.finish(attempt, finished as never);
  ledger.outbox.become(key, 'superseded', { answer: 'lease 2 was granted since' });
  await sync(listed('running', 'queued'));
  expect(ordinals()).toEqual([1]);
  expect(ledger.outbox.pending()).toEqual([]);
  await sync(listed('queued', 'queued'));
  expect(ordinals()).toEqual([1]);
  expect(ledger.outbox.pending()).toMatchObject([{ ordinal: 0, report: 'queued' }]);
});

test('a trial that was canceled here stays so, and a planned run is left to its own worker', async () => {
  await sync(listed('queued'));
  ledger.queue.withdraw(
    queued().map(({ key }) => key),
    'canceled',
  );
  expect(await sync(listed('queued'))).toBe(false);
  expect(ordinals()).toEqual([]);
  const run = { id: 'run_2', taskIndex: 0, caseId: 'a', caseName: 'A', variant: 'v' };
  ledger.batches.add({ service, id: 'batch_2', suite: 'S', file: undefined, runs: [run] });
  expect(await sync({ ...listed('queued'), id: 'run_2', batchId: 'batch_2' })).toBe(false);
  expect(ordinals()).toEqual([]);
});

test('what was canceled here and had ended elsewhere is left, and cannot be taken back', async () => {
  await sync(listed('queued', 'queued'));
  const trials = ledger.queue.openTrials({ service, lock: daemonLock }, 'run_1');
  const [{ batch = 0 } = {}] = trials;
  ledger.queue.withdraw(
    trials.map(({ key }) => key),
    'canceled',
  );
  const runs = async function* () {
    yield listed('reported', 'queued');
  };
  const ended = await leaveEnded(
    trials,
    { ledger, client: { runs } as unknown as Client },
    new AbortController().signal,
  );
  expect(ended.map(({ ordinal }) => ordinal)).toEqual([0]);
  expect(ledger.queue.canceled(batch, undefined, 'found').map(({ ordinal }) => ordinal)).toEqual([1]);
  expect(namedRuns(ledger, service, 'batch_1')).toContain('`offsite service runs batch_1` shows how');
});

test('a run has work for this agent as long as another one may give a trial back', () => {
  expect(mayHaveWork(listed('reported', 'running'))).toBe(true);
  expect(mayHaveWork(listed('reported', 'queued'))).toBe(true);
  expect(mayHaveWork(listed('reported', 'voided'))).toBe(false);
  expect(mayHaveWork({ ...listed('running'), local: false })).toBe(false);
  expect(mayHaveWork({ ...listed('running'), status: 'canceled' })).toBe(false);
});

test('the trials of a run decide what is open; where their status is not known either, that is told', async () => {
  expect(await sync({ ...listed('reported', 'queued'), status: 'completed' })).toBe(true);
  expect(ordinals()).toEqual([1]);
  expect(mayHaveWork({ ...listed('reported', 'voided'), status: 'completed' })).toBe(false);
  expect(isUnclear({ ...listed('reported', 'queued'), status: 'assigned' })).toBe(false);
  expect(isUnclear({ ...listed(), status: 'assigned' })).toBe(true);
  expect(isUnclear(listed('reported', 'pending'))).toBe(true);
  expect(isUnclear({ ...listed('reported', 'pending'), status: 'completed' })).toBe(false);
});
