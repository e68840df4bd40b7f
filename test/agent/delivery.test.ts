import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Delivery } from '../../src/agent/delivery.ts';
import { createClient } from '../../src/client/client.ts';
import { systemClock } from '../../src/clock.ts';
import type { ReportedTrial } from '../../src/contract/report.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { json, type ScriptedService, type Step, scriptedService } from '../client/scripted-service.ts';
import { queueTrial } from '../ledger/queue-trial.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-delivery-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const report: ReportedTrial = {
  caseName: 'A',
  ordinal: 1,
  taskIndex: 0,
  events: [
    { _tag: 'Started', model: 'm', sessionId: 's', at: 1 },
    { _tag: 'command', command: 'ls', exitCode: 0 },
  ],
  outcome: { passed: true },
};
const notFound = json(404, { _tag: 'NotFound', message: 'no such run' });
const conflict = json(409, { _tag: 'Conflict', message: 'recorded with other content' });
const success = json(200, {});

/** Delivers one queued report `times` times over to a service that answers so. */
async function deliver(steps: Step[], times = 1) {
  await using service = await scriptedService(...steps);
  await using client = createClient({
    url: service.url,
    apiKey: 'key-1234',
    clock: systemClock,
    retry: { attempts: 1 },
  });
  using ledger = new Ledger(folder, systemClock);
  const batch = ledger.batches.add({
    service: 'there',
    id: 'batch_1',
    suite: 'S',
    file: undefined,
    runs: [{ id: 'run_1', taskIndex: 0, caseId: 'a', caseName: 'A', variant: 'v', details: {} }],
  });
  const warnings: string[] = [];
  const delivery = new Delivery({
    client,
    outbox: ledger.outbox,
    clock: systemClock,
    warn: (line) => warnings.push(line),
  });
  const outcomes = [];
  for (let ordinal = 1; ordinal <= times; ordinal++) {
    const attempt = ledger.trials.beginAttempt(queueTrial(ledger, batch.key, ordinal));
    await ledger.trials.finish(attempt, { verdict: 'passed', result: {}, report: { ...report, ordinal } });
    const pending = ledger.outbox.ofTrial(attempt.trial);
    if (!pending) throw new Error('the report is not queued');
    outcomes.push(await delivery.deliver(pending, AbortSignal.timeout(10_000)));
  }
  return { outcomes, warnings, sent: sentTo(service), left: ledger.outbox.pending() };
}

function sentTo(service: ScriptedService) {
  return service.received.map(({ body }) => JSON.parse(body));
}

describe('a report', () => {
  test('goes out once, with the id of its run, and leaves the outbox', async () => {
    const { outcomes, sent, left } = await deliver([success]);
    expect(outcomes).toEqual([{ kind: 'delivered' }]);
    expect(sent).toEqual([{ id: 'run_1', trial: report }]);
    expect(left).toEqual([]);
  });

  test('goes out by its batch where the service knows no such run, and the next one at once', async () => {
    const { outcomes, sent } = await deliver([notFound, success], 2);
    expect(outcomes).toEqual([{ kind: 'delivered' }, { kind: 'delivered' }]);
    expect(sent.map(({ id }) => id)).toEqual(['run_1', 'batch_1', 'batch_1']);
  });

  test('is parked where the service knows neither run nor batch', async () => {
    const { outcomes, sent, left } = await deliver([notFound]);
    expect(outcomes).toMatchObject([{ kind: 'kept', state: 'parked' }]);
    expect(sent.map(({ id }) => id)).toEqual(['run_1', 'batch_1']);
    expect(left).toMatchObject([{ state: 'parked', answer: expect.stringContaining('no such run') }]);
  });

  test('goes out without its trajectory where the service refuses those events, said once and remembered', async () => {
    const refusal = json(400, {
      _tag: 'HttpApiDecodeError',
      message: 'bad',
      issues: [{ _tag: 'Type', path: ['trial', 'events', 1, '_tag'], message: 'expected Started' }],
    });
    const { outcomes, sent, warnings } = await deliver([refusal, success], 2);
    expect(outcomes).toEqual([{ kind: 'delivered' }, { kind: 'delivered' }]);
    expect(sent.map(({ trial }) => trial.events.length)).toEqual([2, 1, 1]);
    expect(warnings).toHaveLength(1);
  });

  test('counts as delivered on a conflict when the service has the trial, and the difference is said', async () => {
    const list = json(200, {
      page: 1,
      pageSize: 20,
      total: 1,
      runs: [{ id: 'run_1', trials: [{ id: 't', ordinal: 1, status: 'reported' }] }],
    });
    const { outcomes, warnings, left } = await deliver([conflict, list]);
    expect(outcomes).toEqual([{ kind: 'delivered' }]);
    expect(warnings[0]).toContain('already recorded');
    expect(left).toEqual([]);
  });

  test('is parked on a conflict when the service does not have the trial', async () => {
    const list = json(200, {
      page: 1,
      pageSize: 20,
      total: 1,
      runs: [{ id: 'run_1', trials: [{ id: 't', ordinal: 1, status: 'queued' }] }],
    });
    expect((await deliver([conflict, list])).outcomes).toMatchObject([{ kind: 'kept', state: 'parked' }]);
  });

  test('is parked where the service will not have it, since sending it again would not help', async () => {
    const { left } = await deliver([json(413, { _tag: 'TooLarge', message: 'too large' })]);
    expect(left).toMatchObject([{ state: 'parked', answer: expect.stringContaining('too large') }]);
  });

  test('stays queued while the service fails', async () => {
    const broken = await deliver([json(500, { _tag: 'InternalError', message: 'sorry' })]);
    expect(broken.left).toMatchObject([{ state: 'queued', tries: 1 }]);
  });

  test('stays queued while the key is refused, since a key can be mended', async () => {
    const refused = await deliver([json(401, { _tag: 'Unauthorized', message: 'who?' })]);
    expect(refused.left).toMatchObject([{ state: 'queued', tries: 1 }]);
  });
});
