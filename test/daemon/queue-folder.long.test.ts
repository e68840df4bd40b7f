import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { storedPlan } from '../../src/agent/batch-run.ts';
import { startQueued } from '../../src/agent/daemon/batch-queue.ts';
import { readTicket, writeTicket } from '../../src/agent/daemon/ticket.ts';
import { startUnder } from '../../src/agent/start-batch.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { createClient } from '../../src/client/client.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { daemonLock } from '../../src/ledger/queue.ts';
import { startRequest } from '../../src/suite/plan.ts';
import { type FaultFront, openFaultFront } from '../faults/fault-front.ts';
import { faultPlan } from '../faults/fault-plan.ts';

let folder: string;
let front: FaultFront;
let ledger: Ledger;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-queue-'));
  front = await openFaultFront(join(folder, 'service'));
  ledger = new Ledger(folder, systemClock);
});
afterEach(async () => {
  ledger[Symbol.dispose]();
  await front[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const { signal } = new AbortController();
const service = 'faulty';

/** Waits pass at once; deadlines are real. */
const hasty: Clock = {
  ...systemClock,
  sleep: (ms, signal) => (ms <= 10_000 ? Promise.resolve() : systemClock.sleep(ms, signal)),
};

function partsOf() {
  const client = createClient({ url: front.url, apiKey: front.key, clock: hasty });
  const untouched = () => {
    throw new Error('nothing is started afresh');
  };
  const engine = new Proxy({}, { get: untouched }) as Engine;
  const log = pino({ level: 'silent' });
  const parts = { client, ledger, clock: hasty, service, engine, revision: untouched, log };
  return { ...parts, started: () => undefined, refused: () => undefined };
}

function starts(): number {
  return front.asked.filter((operation) => operation === 'evals.start').length;
}

test('a daemon that died before the service answered finds its batch again, and starts no other', async () => {
  const file = await writeTicket(folder, faultPlan);
  const planned = readTicket(file);
  const plan = await ledger.blobs.putJson(storedPlan(planned));
  ledger.starts.add({ service, suite: planned.suite.name, file, plan, lock: daemonLock });
  const { id } = await front.ask('evals.start', startRequest(planned));
  const before = starts();

  const parts = partsOf();
  await using _client = parts.client;
  await startQueued(parts, signal);
  expect(starts()).toBe(before);
  expect(existsSync(file)).toBe(false);
  const [batch] = ledger.batches.find(String(id));
  expect(batch).toMatchObject({ lock: daemonLock, state: 'open' });
  expect(ledger.queue.count({ service, lock: daemonLock })).toBe(faultPlan.cases.length * faultPlan.trials);
});

test('a daemon that died before it could take the file away starts its batch no second time', async () => {
  const file = await writeTicket(folder, faultPlan);
  const parts = partsOf();
  await using _client = parts.client;
  const batch = await startUnder(daemonLock, readTicket(file), parts, signal);
  const before = starts();

  await startQueued(parts, signal);
  expect(starts()).toBe(before);
  expect(existsSync(file)).toBe(false);
  expect(ledger.queue.next({ service, lock: daemonLock }, 1)).toMatchObject([
    { batchId: batch.id, origin: 'planned' },
  ]);
});

test('while the service does not answer the file stays where it is', async () => {
  const file = await writeTicket(folder, faultPlan);
  const parts = partsOf();
  await using _client = parts.client;
  await startUnder(daemonLock, readTicket(file), parts, signal);
  front.fate = () => 'cut-before';
  await expect(startQueued(parts, signal)).rejects.toThrow();
  expect(existsSync(file)).toBe(true);
});
