import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readPlan } from '../../src/agent/batch-run.ts';
import { missingSetups, startBatch } from '../../src/agent/start-batch.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { createClient } from '../../src/client/client.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { type SuitePlan, startRequest } from '../../src/suite/plan.ts';
import { type FaultFront, openFaultFront } from '../faults/fault-front.ts';
import { faultPlan } from '../faults/fault-plan.ts';

let folder: string;
let front: FaultFront;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-start-'));
  front = await openFaultFront(join(folder, 'service'));
});
afterEach(async () => {
  await front[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** Waits pass at once; deadlines are real. */
const hasty: Clock = {
  ...systemClock,
  sleep: (ms, signal) => (ms <= 10_000 ? Promise.resolve() : systemClock.sleep(ms, signal)),
};
const { signal } = new AbortController();
const [firstVariant] = faultPlan.variants;

/** Two cases on two variants of one model, which the service can tell apart by their connections alone. */
const plan: SuitePlan = {
  ...faultPlan,
  cases: ['one', 'two'].flatMap((id) =>
    faultPlan.cases.map((planned) => ({ ...planned, request: { ...planned.request, id, name: id } })),
  ),
  variants: ['first', 'second'].flatMap((name) =>
    firstVariant
      ? [{ ...firstVariant, name, credentials: { harnessConnectionId: name, sandboxConnectionId: 'local' } }]
      : [],
  ),
};

async function start(ledger: Ledger, planned = plan) {
  await using client = createClient({ url: front.url, apiKey: front.key, clock: hasty });
  const parts = { client, ledger, clock: hasty, service: 'faulty' };
  const { batch, lock } = await startBatch(planned, parts, signal);
  using _lock = lock;
  return batch;
}

/** The runs that the service has of a case, newest first. */
async function runsOf(
  caseId: string,
): Promise<{ id: string; batchId: string; variant: { harness: string } }[]> {
  return (await front.ask('evals.runs.list', { caseId })).runs as never;
}

const loseFirstAnswer = () => {
  let lost = false;
  front.fate = (operation) => {
    if (operation !== 'evals.start' || lost) return 'pass';
    lost = true;
    return 'cut-after';
  };
};

describe('a batch whose start got no answer', () => {
  test('is found again and not started twice, each run with its own case and variant', async () => {
    using ledger = new Ledger(folder, systemClock);
    loseFirstAnswer();
    const batch = await start(ledger);
    expect(front.asked.filter((operation) => operation === 'evals.start')).toHaveLength(1);
    const runs = [...(await runsOf('one')), ...(await runsOf('two'))];
    expect(new Set(runs.map(({ batchId }) => batchId))).toEqual(new Set([batch.id]));
    for (const run of batch.runs) {
      expect(runs.find(({ id }) => id === run.id)?.variant.harness).toBe(run.variant.name);
    }
    expect(batch.runs.map((run) => `${run.case.request.id} ${run.variant.name}`)).toEqual([
      'one first',
      'one second',
      'two first',
      'two second',
    ]);
    expect(ledger.starts.open()).toEqual([]);
  });

  test('is told from an earlier one of the same suite that this machine owns', async () => {
    using ledger = new Ledger(folder, systemClock);
    const earlier = await start(ledger);
    loseFirstAnswer();
    const batch = await start(ledger);
    expect(batch.id).not.toBe(earlier.id);
    const [newest] = await runsOf('one');
    expect(batch.id).toBe(newest?.batchId);
  });

  test('fails with START_AMBIGUOUS if several batches fit, and starts nothing', async () => {
    using ledger = new Ledger(folder, systemClock);
    await front.ask('evals.start', startRequest(plan));
    loseFirstAnswer();
    await expect(start(ledger)).rejects.toMatchObject({
      code: 'START_AMBIGUOUS',
      hint: expect.stringContaining('No trial was run'),
    });
    expect(front.asked.filter((operation) => operation === 'evals.start')).toHaveLength(1);
  });

  test('that the service does not have is said to be unknown, and is not started again', async () => {
    using ledger = new Ledger(folder, systemClock);
    front.fate = (operation) => (operation === 'evals.start' ? 'cut-before' : 'pass');
    await expect(start(ledger)).rejects.toMatchObject({ code: 'START_UNKNOWN' });
    expect(front.asked.filter((operation) => operation === 'evals.start')).toHaveLength(1);
    expect(ledger.starts.open()).toEqual([]);
    expect(ledger.batches.open()).toEqual([]);
  });
});

test('a batch that the service refuses leaves nothing to resume', async () => {
  using ledger = new Ledger(folder, systemClock);
  front.fate = (operation) => (operation === 'evals.start' ? 403 : 'pass');
  await expect(start(ledger)).rejects.toMatchObject({ status: 403 });
  expect(ledger.starts.open()).toEqual([]);
});

test('of runs that the service does not list, the first one is named, and no other case is asked for', async () => {
  using ledger = new Ledger(folder, systemClock);
  const batch = await start(ledger);
  front.fate = (operation) => (operation === 'evals.runs.list' ? 404 : 'pass');
  const asked = front.asked.length;
  await using client = createClient({ url: front.url, apiKey: front.key, clock: hasty });
  await expect(missingSetups(batch, { client, ledger }, signal)).rejects.toMatchObject({
    code: 'RUN_NOT_LISTED',
    message: `the service started run ${batch.runs[0]?.id} but does not list it for case one`,
  });
  expect(front.asked.slice(asked)).toEqual(['evals.runs.list']);
});

test('a batch keeps what resuming needs: files of profiles byte for byte, and a lock that others see', async () => {
  using ledger = new Ledger(folder, systemClock);
  const content = Buffer.from([0, 255, 128, 10]);
  const variants = plan.variants.map((variant) => ({
    ...variant,
    profile: { ...variant.profile, files: [{ path: '/opt/tool', content, mode: 0o755 }] },
  }));
  await using client = createClient({ url: front.url, apiKey: front.key, clock: hasty });
  const parts = { client, ledger, clock: hasty, service: 'faulty' };
  const { lock } = await startBatch({ ...plan, variants }, parts, signal);
  using _lock = lock;
  const [stored] = ledger.batches.open();
  expect(ledger.takeLock(stored?.lock ?? '')).toBeUndefined();
  const kept = readPlan(ledger.blobs.readJson(stored?.plan ?? ''));
  expect(kept.variants[0]?.profile.files).toEqual([{ path: '/opt/tool', content, mode: 0o755 }]);
  expect(kept.cases).toMatchObject([{ request: { id: 'one' } }, { request: { id: 'two' } }]);
});
