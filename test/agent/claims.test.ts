import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { abandonCanceled } from '../../src/agent/abandon-batch.ts';
import { type ClaimedTrial, NotClaimed, ServiceClaims } from '../../src/agent/claims.ts';
import { systemClock } from '../../src/base/clock.ts';
import { claimAnswers, serviceDescription } from '../../src/bounds/service.ts';
import type { Client } from '../../src/client/client.ts';
import type { StartResponse } from '../../src/contract/definition.ts';
import type { ClaimResponse } from '../../src/contract/operations.ts';
import { noteCopy } from '../../src/service/store/stores.ts';
import { type FlakyService, openFlakyService } from '../cli/flaky-service.ts';
import { openPlace, type Place } from '../cli/place.ts';
import { clientOf } from '../client/client-of.ts';
import { startRequest } from '../service/test-service.ts';
import { type HandClock, handClock, settled } from './test-clock.ts';

const leaseMs = 90_000;
const { signal } = new AbortController();

let place: Place;
let service: FlakyService;
let client: Client;
let clock: HandClock;
let run: string;

beforeEach(async () => {
  place = openPlace();
  service = await openFlakyService(place);
  client = openClient(service.env.OFFSITE_URL);
  clock = handClock();
  const { runs } = (await service.ask('evals.start', startRequest())) as StartResponse;
  run = runs[0]?.id ?? '';
});
afterEach(async () => {
  await client[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
  place[Symbol.dispose]();
});

/** A client that does not wait long before it asks again. */
function openClient(url: string): Client {
  const retry = { firstWait: 1, longestWait: 1 };
  return clientOf({ url }, { apiKey: service.env.OFFSITE_API_KEY, clock: systemClock, retry });
}

function claimsOf(agent: string): ServiceClaims {
  return new ServiceClaims({ client, agent, clock, leaseMs });
}

const found = (ordinal = 0): ClaimedTrial => ({ runId: run, ordinal, origin: 'found' });
const planned = (ordinal = 0): ClaimedTrial => ({ ...found(ordinal), origin: 'planned' });

/** As another agent that has the trial from now on, whoever had it. */
async function takeOver(holder: string, ordinal = 0): Promise<void> {
  const request = { id: run, ordinal };
  const freed = (await service.ask('evals.claimTrial', {
    ...request,
    agent: holder,
    seconds: 0,
  })) as ClaimResponse;
  expect(freed.attempt).toBeGreaterThan(0);
  await service.ask('evals.claimTrial', { ...request, agent: 'another', seconds: 60 });
}

async function reasonOf(promise: Promise<unknown>): Promise<NotClaimed> {
  const reason = await promise.then(
    () => undefined,
    (error) => error,
  );
  if (reason instanceof NotClaimed) return reason;
  throw new Error(`expected NotClaimed, got ${reason}`);
}

const claimed = () => service.asked.filter((operation) => operation === 'evals.claimTrial').length;

test('of two agents one gets the trial, and the other learns when to look again', async () => {
  using lease = await claimsOf('a').acquire(found(), signal);
  expect(lease.number).toBe(1);
  const { why, message } = await reasonOf(claimsOf('b').acquire(found(), signal));
  expect(why).toEqual({ kind: 'held', waitMs: claimAnswers.time.held });
  expect(message).toContain('"a"');
});

test('a trial that has ended is never claimed again', async () => {
  const outcome = { passed: true };
  const trial = { caseName: 'CSV', ordinal: 0, taskIndex: 0, events: [], outcome };
  await service.ask('evals.reportTrial', { id: run, trial });
  expect((await reasonOf(claimsOf('a').acquire(found(), signal))).why).toEqual({ kind: 'ended' });
});

test('a lease is renewed each third of its time until it is settled', async () => {
  const lease = await claimsOf('a').acquire(found(), signal);
  for (const renewals of [1, 2]) {
    await clock.pass(leaseMs / 3);
    await expect.poll(claimed).toBe(1 + renewals);
  }
  expect(lease.number).toBe(1);
  lease.settle();
  await clock.pass(leaseMs);
  await settled();
  expect(claimed()).toBe(3);
});

test('a lease that is disposed frees its trial at once; a settled one does not', async () => {
  await using claims = claimsOf('a');
  const [first, second] = [await claims.acquire(found(0), signal), await claims.acquire(found(1), signal)];
  first[Symbol.dispose]();
  second.settle();
  second[Symbol.dispose]();
  await claims[Symbol.asyncDispose]();
  using other = await claimsOf('b').acquire(found(0), signal);
  expect(other.number).toBe(2);
  expect((await reasonOf(claimsOf('b').acquire(found(1), signal))).why.kind).toBe('held');
});

test('a lease that the service gave to another agent is lost', async () => {
  using lease = await claimsOf('a').acquire(found(), signal);
  await takeOver('a');
  await clock.pass(leaseMs / 3);
  await expect.poll(() => lease.lost.aborted).toBe(true);
  expect(lease.lost.reason).toMatchObject({ why: { kind: 'held' } });
});

test("an agent's own claim that was late on its way does not cost it the trial", async () => {
  using lease = await claimsOf('a').acquire(found(), signal);
  const late = { id: run, ordinal: 0, agent: 'a', seconds: leaseMs / 1000 };
  expect(await service.ask('evals.claimTrial', late)).toMatchObject({ attempt: 2 });
  await clock.pass(leaseMs / 3);
  await expect.poll(() => lease.number).toBe(3);
  expect(lease.lost.aborted).toBe(false);
});

test('a machine that slept asks before its result counts', async () => {
  using lease = await claimsOf('a').acquire(found(), signal);
  await lease.confirm(signal);
  expect(claimed()).toBe(1);
  // The monotonic clock stood still, and so did all timers.
  clock.set(clock.now() + leaseMs);
  await lease.confirm(signal);
  expect(claimed()).toBe(2);
  await takeOver('a');
  clock.set(clock.now() + leaseMs);
  expect((await reasonOf(lease.confirm(signal))).why.kind).toBe('held');
});

test('while the service is down, a running trial goes on and its lease is renewed later', async () => {
  using lease = await claimsOf('a').acquire(found(), signal);
  service.down.add('evals.claimTrial');
  await clock.pass(leaseMs / 3);
  await expect.poll(claimed).toBeGreaterThan(1);
  await settled();
  await clock.pass(leaseMs);
  await lease.confirm(signal);
  expect(lease.lost.aborted).toBe(false);
  service.down.clear();
  await settled();
  const before = claimed();
  await clock.pass(5_000);
  await expect.poll(claimed).toBeGreaterThan(before);
  expect(lease.lost.aborted).toBe(false);
});

test('while the service is down, found trials wait, and planned ones run and are claimed later', async () => {
  const claims = claimsOf('a');
  (await claims.acquire(found(1), signal))[Symbol.dispose]();
  service.down.add('evals.claimTrial');
  const { why, message } = await reasonOf(claims.acquire(found(), signal));
  expect(why).toEqual({ kind: 'unasked', waitMs: claimAnswers.time.down });
  expect(message).toContain('503');
  await clock.pass(5_000);
  const other = await reasonOf(claims.acquire(found(1), signal));
  expect(other.why).toEqual({ kind: 'unasked', waitMs: claimAnswers.time.down - 5_000 });
  expect(other.message).toContain('the service did not answer the claim of another trial: ');
  const before = claimed();
  using lease = await claims.acquire(planned(), signal);
  // It does not wait for a service that was down a moment ago.
  expect([lease.number, claimed()]).toEqual([undefined, before]);
  service.down.clear();
  await clock.pass(5_000);
  await expect.poll(() => lease.number).toBe(1);
});

test('a planned trial that began without the service is lost if another agent has it', async () => {
  const claims = claimsOf('a');
  service.down.add('evals.claimTrial');
  using lease = await claims.acquire(planned(), signal);
  await service.ask('evals.claimTrial', { id: run, ordinal: 0, agent: 'another', seconds: 60 });
  service.down.clear();
  await clock.pass(5_000);
  await expect.poll(() => lease.lost.aborted).toBe(true);
});

test('what runs goes on while a restored service gives no new leases', async () => {
  const copy = join(place.folder, 'copy.db');
  const claims = claimsOf('a');
  using leased = await claims.acquire(found(1), signal);
  service.backUp(copy);
  noteCopy(copy);
  // The backup does not have the second lease.
  const request = { id: run, ordinal: 1, agent: 'a', seconds: leaseMs / 1000 };
  await service.ask('evals.claimTrial', request);
  await clock.pass(leaseMs / 3);
  await expect.poll(() => leased.number).toBe(3);
  service.down.add('evals.claimTrial');
  using unleased = await claims.acquire(planned(), signal);
  await service.restore(copy);
  service.down.clear();
  const before = claimed();
  await clock.pass(leaseMs / 3);
  await expect.poll(claimed).toBeGreaterThan(before + 1);
  await settled();
  await unleased.confirm(signal);
  expect([unleased.number, unleased.lost.aborted]).toEqual([undefined, false]);
  await expect.poll(() => leased.number).toBe(2);
  expect(leased.lost.aborted).toBe(false);
  // Nothing begins, because others may have ended it after the backup.
  expect((await reasonOf(claimsOf('b').acquire(planned(), signal))).why.kind).toBe('held');
});

test('nothing answers at all: found trials wait, planned ones run', async () => {
  await using nowhere = openClient('http://127.0.0.1:9');
  const parts = { client: nowhere, agent: 'a', clock, leaseMs };
  const claims = new ServiceClaims(parts);
  const { why } = await reasonOf(claims.acquire(found(), signal));
  expect(why).toEqual({ kind: 'unasked', waitMs: claimAnswers.time.down });
  using lease = await claims.acquire(planned(), signal);
  expect(lease.number).toBeUndefined();
});

test('a service without claims is asked once, and again after an hour', async () => {
  service.down.add('evals.claimTrial');
  const real = client.offers;
  let offers = 0;
  const without: Pick<Client, 'call' | 'offers'> = {
    call: client.call,
    async offers(...asked) {
      offers++;
      return offers === 1 ? 'absent' : real(...asked);
    },
  };
  const parts = { client: without, agent: 'a', clock, leaseMs };
  const claims = new ServiceClaims(parts);
  for (const trial of [found(0), found(1), planned(0)]) {
    using lease = await claims.acquire(trial, signal);
    expect(lease.number).toBeUndefined();
  }
  expect([offers, claimed()]).toEqual([1, 0]);
  service.down.clear();
  await clock.pass(serviceDescription.time.absent);
  using lease = await claims.acquire(found(), signal);
  expect([offers, lease.number]).toEqual([2, 1]);
});

test('a service that answers 404 is asked again what it offers; a run that it does not know waits', async () => {
  const claims = claimsOf('a');
  const unknown = { ...found(), runId: 'run_unknown' };
  const { why, message } = await reasonOf(claims.acquire(unknown, signal));
  expect(why).toEqual({ kind: 'unasked' });
  expect(message).toContain('There is no run run_unknown');
  expect(message).toContain('offsite data abandon run_unknown --unreported');
  expect(service.asked.filter((path) => path === 'openapi.json')).toHaveLength(2);
  // Other runs are not held up by that.
  using lease = await claims.acquire(found(), signal);
  expect(lease.number).toBe(1);
});

test('a run that the service has lost is not abandoned as if others had it', async () => {
  const trial = { key: 1, ordinal: 0, runId: 'run_unknown', batchId: 'b', caseName: 'c', memory: '{}' };
  const parts = { claims: claimsOf('a'), clock, unreported: false };
  await expect(abandonCanceled([trial as never], parts as never, signal)).rejects.toMatchObject({
    code: 'RUN_GONE',
    hint: expect.stringContaining('--unreported'),
  });
});

test('while a proxy answers 404 for a service that granted claims, found trials wait, for an hour at most', async () => {
  let isReplaced = false;
  const proxied: Pick<Client, 'call' | 'offers'> = {
    call: client.call,
    offers: async (...asked) => (isReplaced ? 'absent' : client.offers(...asked)),
  };
  const claims = new ServiceClaims({ client: proxied, agent: 'a', clock, leaseMs });
  using first = await claims.acquire(found(0), signal);
  expect(first.number).toBe(1);
  first.settle();
  isReplaced = true;
  const unknown = { ...found(), runId: 'run_unknown' };
  expect((await reasonOf(claims.acquire(unknown, signal))).why).toEqual({ kind: 'unasked' });
  expect((await reasonOf(claims.acquire(found(1), signal))).why.kind).toBe('unasked');
  isReplaced = false;
  await clock.pass(claimAnswers.time.down);
  using second = await claims.acquire(found(1), signal);
  expect(second.number).toBe(1);
  second.settle();
  isReplaced = true;
  await clock.pass(serviceDescription.time.absent);
  using last = await claims.acquire(unknown, signal);
  expect(last.number).toBeUndefined();
});

test.for([1.5, 0, -1, 1e300])('a lease with the number %d is none', async (attempt) => {
  service.alter = (operation, body) =>
    operation === 'evals.claimTrial' ? JSON.stringify({ attempt, expiresAt: 'never' }) : body;
  const claims = claimsOf('a');
  expect((await reasonOf(claims.acquire(found(), signal))).why.kind).toBe('unasked');
  using lease = await claims.acquire(planned(1), signal);
  expect(lease.number).toBeUndefined();
});

test('a trial that is free again at once is not claimed again without a pause', async () => {
  using lease = await claimsOf('a').acquire(found(), signal);
  await takeOver('a');
  await service.ask('evals.claimTrial', { id: run, ordinal: 0, agent: 'another', seconds: 0 });
  await clock.pass(leaseMs / 3);
  await expect.poll(() => lease.lost.aborted).toBe(true);
  expect(lease.lost.reason).toMatchObject({ why: { kind: 'held', waitMs: 1_000 } });
});
