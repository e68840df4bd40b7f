import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ClaimResponse } from '../../src/contract/operations.ts';
import { copyDatabase } from '../../src/ledger/database.ts';
import { serviceDatabase } from '../../src/service/service.ts';
import { noteCopy } from '../../src/service/store/stores.ts';
import { runs } from '../short-tests.ts';
import {
  folderForTest,
  openTestService,
  report,
  startRequest,
  startRun,
  type TestService,
  temporaryFolder,
} from './test-service.ts';

let service: TestService;
let run: string;
beforeEach(async () => {
  service = openTestService();
  run = await startRun(service);
});
afterEach(() => service[Symbol.asyncDispose]());

const claim = (agent: string, more: object = {}) =>
  service.ask('evals.claimTrial', { id: run, ordinal: 0, agent, seconds: 60, ...more });

async function trialStatuses() {
  const { runs } = await service.succeed('evals.runs.list', { caseId: 'csv' });
  return [runs[0]?.status, ...(runs[0]?.trials ?? []).map(({ status }) => status)];
}

test('a trial is claimed by one agent at a time, and shows as running meanwhile', async () => {
  expect(await claim('a')).toMatchObject({
    status: 200,
    body: { attempt: 1, expiresAt: '2026-03-01T12:01:00.000Z' },
  });
  expect(await trialStatuses()).toEqual(['running', 'running', 'queued']);
  const refused = await claim('b');
  expect(refused).toMatchObject({ status: 409, body: { _tag: 'Conflict' } });
  expect(refused.body).toHaveProperty('message', expect.stringMatching(/"a" has claimed .* until 2026-/));
  expect(refused.headers.get('retry-after')).toBe('60');
  expect((await claim('b', { ordinal: 1 })).status).toBe(200);
});

test('a lease that is not renewed expires, and then shows as queued until another agent claims it', async () => {
  await claim('a');
  service.clock.advance(59_999);
  expect((await claim('b')).status).toBe(409);
  service.clock.advance(1);
  expect(await trialStatuses()).toEqual(['queued', 'queued', 'queued']);
  expect(await claim('b')).toMatchObject({ status: 200, body: { attempt: 2 } });
});

test('a lease that was granted before the clock was set back by a day holds no trial for a day', async () => {
  await claim('a');
  service.clock.advance(-24 * 3600_000);
  expect(await trialStatuses()).toEqual(['queued', 'queued', 'queued']);
  // Its agent keeps it if it is there.
  expect(await claim('a', { attempt: 1 })).toMatchObject({
    status: 200,
    body: { attempt: 1, expiresAt: '2026-02-28T12:01:00.000Z' },
  });
  expect((await claim('b')).status).toBe(409);
  service.clock.advance(-24 * 3600_000);
  expect(await claim('b')).toMatchObject({ status: 200, body: { attempt: 2 } });
  expect((await claim('a', { attempt: 1 })).status).toBe(409);
});

test('a lease is renewed with its number, also late, unless another one was granted since', async () => {
  await claim('a');
  service.clock.advance(50_000);
  expect(await claim('a', { attempt: 1 })).toMatchObject({
    status: 200,
    body: { attempt: 1, expiresAt: '2026-03-01T12:01:50.000Z' },
  });
  service.clock.advance(90_000);
  expect(await claim('a', { attempt: 1 })).toMatchObject({ status: 200, body: { attempt: 1 } });
  service.clock.advance(60_000);
  await claim('b', { seconds: 10 });
  const held = await claim('a', { attempt: 1 });
  expect([held.status, held.headers.get('retry-after')]).toEqual([409, '10']);
  service.clock.advance(10_000);
  const late = await claim('a', { attempt: 1 });
  expect([late.status, late.headers.get('retry-after')]).toEqual([409, '0']);
  expect(await claim('a')).toMatchObject({ status: 200, body: { attempt: 3 } });
});

test('an agent that lost its memory gets a new lease at once, and its old one is over', async () => {
  await claim('a');
  expect(await claim('a')).toMatchObject({ status: 200, body: { attempt: 2 } });
  expect((await claim('a', { attempt: 1 })).status).toBe(409);
});

test('0 seconds give a trial back, but only from the agent that has it', async () => {
  await claim('a');
  expect((await claim('b', { seconds: 0 })).status).toBe(409);
  expect((await claim('a', { seconds: 0, attempt: 1 })).status).toBe(200);
  expect(await trialStatuses()).toEqual(['queued', 'queued', 'queued']);
  expect(await claim('b')).toMatchObject({ status: 200, body: { attempt: 2 } });
});

test('a trial that has ended cannot be claimed or renewed', async () => {
  await claim('a');
  await service.succeed('evals.reportTrial', { ...report(run), attempt: 1 });
  for (const more of [{}, { attempt: 1 }]) {
    const refused = await claim('a', more);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([409, null]);
    expect(refused.body).toHaveProperty('message', 'Trial 0 has ended.');
  }
  expect(await trialStatuses()).toEqual(['running', 'reported', 'queued']);
});

test('runs and trials that are not there, and runs that are not local, cannot be claimed', async () => {
  expect((await claim('a', { id: 'run_none' })).status).toBe(404);
  expect((await claim('a', { ordinal: 2 })).status).toBe(404);
  const foreign = service.keyFor('Others', 'evals:write');
  const request = { id: run, ordinal: 0, agent: 'a', seconds: 60 };
  expect((await service.ask('evals.claimTrial', request, foreign)).status).toBe(404);
  const reader = service.keyFor('Acme', 'evals:read');
  expect((await service.ask('evals.claimTrial', request, reader)).status).toBe(403);
});

test('a report from a lease is refused after a newer one, and accepted while there is none', async () => {
  await claim('a');
  service.clock.advance(60_000);
  // Expired, but nobody else has it.
  await service.succeed('evals.reportTrial', { ...report(run), attempt: 1 });
  await claim('a', { ordinal: 1 });
  service.clock.advance(60_000);
  await claim('b', { ordinal: 1 });
  const stale = await service.ask('evals.reportTrial', { ...report(run, 1), attempt: 1 });
  expect(stale).toMatchObject({ status: 409, body: { message: expect.stringMatching(/lease 2 .*"b"/) } });
  await service.succeed('evals.reportTrial', { ...report(run, 1), attempt: 2 });
  // The same content again succeeds, whoever sends it.
  await service.succeed('evals.reportTrial', { ...report(run, 1), attempt: 1 });
});

test('a report without a lease is accepted although another agent has claimed the trial', async () => {
  await claim('a');
  await service.succeed('evals.reportTrial', report(run));
  expect((await claim('a', { attempt: 1 })).body).toHaveProperty('message', 'Trial 0 has ended.');
});

test('whatever agents do in whatever order, a trial has one holder, and only the last lease reports', async () => {
  const agent = fc.constantFrom('a', 'b', 'c');
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('claim' as const), agent, seconds: fc.nat(30) }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('renew' as const), agent, seconds: fc.nat(30) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), seconds: fc.nat(40) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('report' as const), agent }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { runs } = await service.succeed('evals.start', startRequest());
      const id = runs[0]?.id ?? '';
      /** What each agent believes to have: until when, and the number of the lease. */
      const leases = new Map<string, { attempt: number; until: number }>();
      let newest = 0;
      let isOver = false;
      for (const one of steps) {
        const now = service.clock.now();
        if (one.do === 'pass') {
          service.clock.advance(one.seconds * 1000);
          continue;
        }
        const { attempt } = leases.get(one.agent) ?? {};
        if (one.do === 'report') {
          const sent = { ...report(id), ...(attempt !== undefined && { attempt }) };
          const { status } = await service.ask('evals.reportTrial', sent);
          expect(status).toBe(isOver || attempt === undefined || attempt === newest ? 200 : 409);
          isOver ||= status === 200;
          continue;
        }
        const request = { id, ordinal: 0, agent: one.agent, seconds: one.seconds };
        const { status, body } = await service.ask('evals.claimTrial', {
          ...request,
          ...(one.do === 'renew' && attempt !== undefined && { attempt }),
        });
        const others = [...leases].filter(([name, { until }]) => name !== one.agent && until > now);
        if (isOver || others.length > 0) expect(status).toBe(409);
        if (status === 409) {
          // Its lease is lost: the agent stops.
          leases.delete(one.agent);
          continue;
        }
        const granted = body as ClaimResponse;
        expect(granted.attempt).toBeGreaterThanOrEqual(newest);
        newest = granted.attempt;
        leases.set(one.agent, { attempt: newest, until: Date.parse(granted.expiresAt) });
      }
      const holders = [...leases.values()].filter(({ until }) => until > service.clock.now());
      expect(holders.length).toBeLessThanOrEqual(1);
    }),
    { numRuns: runs(200) },
  );
});

test('after a restore, nobody gets a trial of the backup until its agents had the time to report it again', async () => {
  const [kept, ahead] = [temporaryFolder(), await claim('a')];
  const file = join(kept, serviceDatabase);
  copyDatabase(join(service.folder, serviceDatabase), file);
  noteCopy(file);
  await using restored = openTestService(kept);
  const ask = (agent: string, more: object = {}) =>
    restored.ask('evals.claimTrial', { id: run, ordinal: 1, agent, seconds: 60, ...more }, service.key);
  // A command that only looks into a copy is no restore.
  expect((await ask('looks', { ordinal: 1 })).status).toBe(200);
  await ask('looks', { attempt: 1, seconds: 0 });
  await restored.service.listen();
  expect(restored.logged.join('')).toContain('restored from a backup');
  const refused = await ask('b');
  expect(refused).toMatchObject({
    status: 409,
    body: { _tag: 'Restored', message: expect.stringContaining('report again') },
  });
  expect(refused.headers.get('retry-after')).toBe('600');
  expect((await ask('a', { ordinal: 0 })).status).toBe(409);
  // What runs goes on.
  const { attempt } = ahead.body as ClaimResponse;
  expect((await ask('a', { ordinal: 0, attempt })).status).toBe(200);
  expect((await restored.ask('evals.reportTrial', report(run, 1), service.key)).status).toBe(200);
  const { runs } = await restored.succeed('evals.start', startRequest(), service.key);
  expect((await ask('b', { id: runs[0]?.id })).status).toBe(200);
  // A second start of the server does not begin the time again.
  restored.clock.advance(599_999);
  await restored.service.listen();
  expect((await ask('b', { ordinal: 0 })).status).toBe(409);
  restored.clock.advance(1);
  expect((await ask('b', { ordinal: 0 })).status).toBe(200);
});

test('a service is served while another process writes to its database', async () => {
  using folder = folderForTest();
  await using opened = openTestService(folder.path);
  using other = new DatabaseSync(join(folder.path, serviceDatabase));
  other.exec('BEGIN IMMEDIATE');
  await expect(opened.service.listen()).resolves.toMatchObject({ port: expect.any(Number) });
});
