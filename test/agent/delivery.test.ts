import { truncateSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Delivery, deliverLeftovers } from '../../src/agent/delivery.ts';
import { ServiceSender } from '../../src/agent/sender.ts';
import { systemClock } from '../../src/base/clock.ts';
import { createClient } from '../../src/client/client.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { dropBeforeAnswer, json, type Step, scriptedService } from '../client/scripted-service.ts';
import { eachFolder, folder } from '../each-folder.ts';
import { queueTrial } from '../ledger/queue-trial.ts';
import { handClock, settled } from './test-clock.ts';

eachFolder();

/** Takes each report, and shows it. */
const success: Step = (response, { path, body }) => {
  if (!path.endsWith('evals.runs.list')) return json(200, {})(response, { path, body } as never);
  const trials = Array.from({ length: 10 }, (_, ordinal) => ({
    id: `t${ordinal}`,
    ordinal,
    status: 'reported',
  }));
  return json(200, { page: 1, pageSize: 20, total: 1, runs: [{ id: 'run_1', trials }] })(
    response,
    {} as never,
  );
};
const broken = json(500, { _tag: 'InternalError', message: 'sorry' });
const busy = json(429, { _tag: 'TooMany', message: 'slow down' });
const refused = json(400, {
  _tag: 'HttpApiDecodeError',
  message: 'bad',
  issues: [{ _tag: 'Type', path: ['trial', 'ordinal'], message: 'no' }],
});
const grace = { ms: 1e12, failures: 1e6 };

/**
 * A loop over a ledger with so many finished trials, against a service that answers so. Its clock is moved by
 * hand.
 */
async function loopOver(trials: number, steps: Step[]) {
  await using opened = new AsyncDisposableStack();
  const service = opened.use(await scriptedService(...steps));
  const client = opened.use(
    createClient({ url: service.url, apiKey: 'key-1234', clock: systemClock, retry: { attempts: 1 } }),
  );
  const clock = handClock();
  const ledger = opened.use(new Ledger(folder, clock));
  const run = { id: 'run_1', taskIndex: 0, caseId: 'a', caseName: 'A', variant: 'v' };
  const batch = ledger.batches.add({
    service: 'there',
    id: 'batch_1',
    suite: 'S',
    file: undefined,
    runs: [run],
  });
  const finish = async (ordinal: number) => {
    const attempt = ledger.trials.beginAttempt(queueTrial(ledger, batch.key, ordinal));
    const report = { caseName: 'A', ordinal, taskIndex: 0, events: [], outcome: { passed: true } };
    await ledger.trials.finish(attempt, { verdict: 'passed', result: {}, report });
    return attempt.trial;
  };
  const keys: number[] = [];
  for (let ordinal = 0; ordinal < trials; ordinal++) keys.push(await finish(ordinal));
  const lines: string[] = [];
  const sender = new ServiceSender({ client, ledger, warn: (line) => lines.push(line) });
  const loop = opened.use(
    new Delivery({
      ledger,
      sender,
      clock,
      service: 'there',
      random: () => 0.5,
      observe: (report, { state }) => state !== 'sent' && lines.push(`${report.ordinal} ${state}`),
      note: (line) => lines.push(line),
    }),
  );
  const kept = opened.move();
  return {
    service,
    ledger,
    sender,
    clock,
    loop,
    lines,
    keys,
    finish,
    /** Lets so many waits of the loop pass, each as long as it is, with real answers in between. */
    async passWaits(count: number) {
      for (let wait = 0; wait < count; wait++) await clock.pass(await nextWait(clock));
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** The service answers in real time: waits until the loop waits. */
async function nextWait(clock: ReturnType<typeof handClock>): Promise<number> {
  const giveUp = AbortSignal.timeout(30_000);
  for (;;) {
    giveUp.throwIfAborted();
    await settled();
    // The grace of a drain is not the loop's.
    const waits = clock.waits.filter((ms) => ms < 1e9);
    if (waits.length > 0) return Math.min(...waits);
  }
}

const signal = AbortSignal.timeout(600_000);

describe('the outbox', () => {
  test('is delivered in the background, what is there and what comes', async () => {
    await using bench = await loopOver(3, [success]);
    expect(await bench.loop.drain(grace, signal)).toBe(0);
    await bench.finish(3);
    bench.loop.wake();
    expect(await bench.loop.drain(grace, signal)).toBe(0);
    expect(bench.lines.toSorted()).toEqual(['0 delivered', '1 delivered', '2 delivered', '3 delivered']);
    // One look after the last report of each drain.
    const asked = bench.service.received.map(({ path }) => path.split('.').at(-1));
    expect(asked).toEqual([...Array(3).fill('reportTrial'), 'list', 'reportTrial', 'list']);
  });

  test('goes out to the last when the service comes back after a long time, however it failed', async () => {
    const down = [broken, busy, dropBeforeAnswer, broken, dropBeforeAnswer, busy, broken];
    await using bench = await loopOver(3, [...down, success]);
    const draining = bench.loop.drain({ ...grace, ms: 1e15 }, signal);
    let left = 3;
    draining.then((count) => {
      left = count;
    });
    for (let wait = 0; wait < 40 && left > 0; wait++) await bench.passWaits(1);
    expect(await draining).toBe(0);
    expect(bench.service.received.length).toBeGreaterThanOrEqual(10);
  });

  test('leaves a service that fails alone, for longer and longer, and asks it with one report then', async () => {
    await using bench = await loopOver(4, [broken]);
    await nextWait(bench.clock);
    const asked = [bench.service.received.length];
    const waits: number[] = [];
    for (let round = 0; round < 6; round++) {
      waits.push(await nextWait(bench.clock));
      await bench.passWaits(1);
      await nextWait(bench.clock);
      asked.push(bench.service.received.length);
    }
    expect(asked[0]).toBe(4);
    expect(waits.toSorted((a, b) => a - b)).toEqual(waits);
    expect(Math.max(...waits)).toBeLessThanOrEqual(300_000);
    for (const [round, count] of asked.slice(1).entries())
      expect(count - (asked[round] ?? 0)).toBeLessThanOrEqual(1);
  });

  test('is sent at once when the service is known to answer again, before others claim what has no result', async () => {
    await using bench = await loopOver(2, [broken, broken, broken, broken, success]);
    await nextWait(bench.clock);
    await bench.passWaits(1);
    await nextWait(bench.clock);
    await bench.passWaits(1);
    expect(await nextWait(bench.clock)).toBeGreaterThan(5_000);
    expect(bench.ledger.outbox.pending()).toMatchObject([{ report: 'queued' }, { report: 'queued' }]);
    bench.loop.retry();
    const states = () => bench.ledger.outbox.pending().map(({ report }) => report);
    // They may have been seen at the service by now, too.
    await expect.poll(states).not.toContain('queued');
  });

  test('is compared at once with a service that refuses a report because the trial has ended', async () => {
    const conflict = json(409, { _tag: 'Conflict', message: 'Trial 0 has ended.' });
    await using bench = await loopOver(1, [conflict, success]);
    await expect.poll(() => bench.ledger.outbox.pending()).toEqual([]);
  });

  test('goes on past a report that is refused for good, which is parked', async () => {
    await using bench = await loopOver(3, [refused, success]);
    expect(await bench.loop.drain(grace, signal)).toBe(0);
    expect(bench.ledger.outbox.pending()).toMatchObject([{ report: 'parked' }]);
  });

  test('goes on past a report that the disk has lost, which is parked and said to be damaged', async () => {
    await using bench = await loopOver(0, [success]);
    const { ledger, loop } = bench;
    const trial = await bench.finish(0);
    const row = ledger.records.get('SELECT body FROM reports WHERE trial = ?', trial);
    truncateSync(ledger.blobs.pathOf(String(row?.body)), 10);
    await bench.finish(1);
    loop.wake();
    expect(await loop.drain(grace, signal)).toBe(0);
    expect(ledger.outbox.pending()).toMatchObject([
      { key: trial, report: 'parked', answer: expect.stringContaining('is damaged') },
    ]);
  });

  test('is delivered although the clock was set back by a year after a report was put off', async () => {
    await using bench = await loopOver(1, [broken, success]);
    await nextWait(bench.clock);
    bench.clock.set(bench.clock.now() - 365 * 86_400_000);
    const draining = bench.loop.drain(grace, signal);
    await bench.passWaits(1);
    expect(await draining).toBe(0);
  });

  test('is not waited for longer than the grace', async () => {
    await using bench = await loopOver(2, [broken]);
    expect(await bench.loop.drain({ ms: 1e12, failures: 1 }, signal)).toBe(2);
  });

  test('that is not due for minutes is sent at once by the next command, without the results of its own batch', async () => {
    await using bench = await loopOver(0, [success]);
    const { ledger, sender, clock } = bench;
    const trial = await bench.finish(0);
    ledger.outbox.become(trial, 'queued', { answer: 'not shown', nextAt: clock.now() + 600_000 });
    const command = (own: string[]) =>
      deliverLeftovers({ ledger, sender, clock, service: 'there' }, signal, () => undefined, own);
    expect(await command(['batch_1'])).toBe(0);
    expect(ledger.outbox.pending()).toMatchObject([{ key: trial, report: 'queued' }]);
    expect(await command([])).toBe(0);
    expect(ledger.outbox.pending()).toEqual([]);
  });

  test('that another result has taken the place of is named by the next command', async () => {
    const conflict = json(409, { _tag: 'Conflict', message: 'reported before' });
    const answers: Step = (response, received) =>
      (received.path.endsWith('evals.runs.list') ? success : conflict)(response, received);
    await using bench = await loopOver(0, [answers]);
    await bench.finish(0);
    const { ledger, sender, clock } = bench;
    const notes: string[] = [];
    const parts = { ledger, sender, clock, service: 'there' };
    expect(await deliverLeftovers(parts, signal, (line) => notes.push(line))).toBe(0);
    expect(notes).toEqual([
      'trial 0 of run run_1: its result does not count: the service has another result of the trial (reported)',
    ]);
  });
});
