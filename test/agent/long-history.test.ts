import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Metrics } from '../../src/agent/daemon/metrics.ts';
import { poll } from '../../src/agent/daemon/poll.ts';
import { PollTargets } from '../../src/agent/daemon/poll-targets.ts';
import { Delivery } from '../../src/agent/delivery.ts';
import type { Delivered } from '../../src/agent/reconcile.ts';
import { ServiceSender } from '../../src/agent/sender.ts';
import { pullSetups, startBatch } from '../../src/agent/start-batch.ts';
import { systemClock } from '../../src/base/clock.ts';
import { type Client, createClient } from '../../src/client/client.ts';
import { permissions } from '../../src/contract/definition.ts';
import type { ReportedTrial } from '../../src/contract/report.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { openService, type Service } from '../../src/service/service.ts';
import { ConfigFile } from '../../src/suite/config-file.ts';
import { type SuitePlan, startRequest } from '../../src/suite/plan.ts';
import { faultPlan } from '../faults/fault-plan.ts';

/** A page of this case is larger than any answer that is read as a whole: 200 trials of 400 KB. */
const output = 'ok 1 - the parser keeps the last line\n'.repeat(10_000);
const caseId = 'quick';
const key = 'a-key-not-a-secret';
const { signal } = new AbortController();

const [variant] = faultPlan.variants;
const plan: SuitePlan = {
  ...faultPlan,
  trials: 10,
  variants: ['one', 'two'].flatMap((model) => (variant ? [{ ...variant, name: model, model }] : [])),
};

let folder: string;
let service: Service;
let client: Client;
/** The newest run of the history. */
let newest: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-history-'));
  service = openService({ dataFolder: join(folder, 'service'), clock: systemClock, integrations: [] });
  service.seedKey(key, { organization: 'Local', permissions });
  const { url } = await service.listen();
  client = createClient({ url, apiKey: key, clock: systemClock });
  for (let batch = 0; batch < 10; batch++) {
    const { runs } = await client.call('evals.start', startRequest(plan));
    for (const { id } of runs) {
      newest = id;
      for (let ordinal = 0; ordinal < plan.trials; ordinal++)
        await client.call('evals.reportTrial', { id, trial: report(id, ordinal) });
    }
  }
});

afterAll(async () => {
  await client[Symbol.asyncDispose]();
  await service.close();
  rmSync(folder, { recursive: true });
});

function report(run: string, ordinal: number): ReportedTrial {
  return {
    caseName: 'Quick',
    ordinal,
    taskIndex: 0,
    sandboxId: `${run}-${ordinal}`,
    events: [{ _tag: 'command', command: 'cat', output }],
    outcome: { passed: true, modelMs: 7 },
  };
}

function openLedger(name: string): Ledger {
  return new Ledger(join(folder, name), systemClock);
}

test('the next batch of a case with a long history is started and its setups are pulled', async () => {
  using ledger = openLedger('starts');
  const parts = { client, ledger, clock: systemClock, service: 'here' };
  const { batch, lock } = await startBatch(plan, parts, signal);
  using _lock = lock;
  await pullSetups(batch, parts, signal);
  const runs = ledger.batches.runs(batch.key);
  expect(runs.map(({ setup }) => setup && ledger.blobs.readJson(setup))).toMatchObject(
    plan.variants.map(() => ({ prompt: 'nothing', verify: 'true' })),
  );
  expect(ledger.queue.ofBatch(batch.key)).toHaveLength(20);
});

test('a daemon finds the new run of a case with a long history, and reads the whole history once', async () => {
  const { runs } = await client.call('evals.start', startRequest({ ...plan, trials: 1 }));
  using ledger = openLedger('daemon');
  const { daemon } = ConfigFile.parse({ daemon: { cases: [caseId] } });
  const targets = new PollTargets(daemon, { clock: { monotonic: () => 0 }, random: () => 0.5 });
  let claimed = 0;
  const parts = {
    client,
    clock: systemClock,
    ledger,
    service: 'here',
    targets,
    metrics: new Metrics(),
    log: pino({ level: 'silent' }),
    unclear: new Set<string>(),
    adopted: () => {
      claimed += 1;
    },
    failed: () => undefined,
  };
  await poll(parts, signal);
  expect(targets.failures).toEqual([]);
  expect(claimed).toBeGreaterThanOrEqual(2);
  const queued = ledger.queue.next({ service: 'here', lock: 'daemon' }, 100);
  expect(queued.map(({ runId }) => runId)).toEqual(expect.arrayContaining(runs.map(({ id }) => id)));
  for (const { setup } of queued)
    expect(setup && ledger.blobs.readJson(setup)).toMatchObject({ prompt: 'nothing' });
});

test.each([
  ['by this sandbox is delivered', 'same', { state: 'delivered' }],
  ['by another one is superseded', 'other', { state: 'superseded' }],
])(
  'a report of a trial that was recorded %s',
  async (_, sandbox, outcome) => {
    using ledger = openLedger(sandbox);
    const { key: batch } = ledger.batches.add({
      service: 'here',
      id: 'batch',
      suite: 'S',
      file: undefined,
      runs: [{ id: newest, taskIndex: 0, caseId, caseName: 'Quick', variant: 'v' }],
    });
    const [run] = ledger.batches.runs(batch);
    ledger.queue.add([{ key: run?.key ?? 0, setup: undefined, ordinals: [3] }]);
    const [trial] = ledger.queue.ofBatch(batch);
    const attempt = ledger.trials.beginAttempt(trial?.key ?? 0);
    const sent = { ...report(newest, 3), events: [] };
    if (sandbox === 'other') sent.sandboxId = 'another';
    await ledger.trials.finish(attempt, { verdict: 'passed', result: {}, report: sent });
    const outcomes: Delivered[] = [];
    const sender = new ServiceSender({ client, ledger, warn: () => undefined });
    await using delivery = new Delivery({
      ledger,
      sender,
      clock: systemClock,
      service: 'here',
      observe: (_, delivered) => outcomes.push(delivered),
      note: () => undefined,
    });
    await delivery.drain({ ms: 0, failures: 1 }, signal);
    expect(outcomes).toMatchObject([{ state: 'sent' }, outcome]);
  },
  120_000,
);
