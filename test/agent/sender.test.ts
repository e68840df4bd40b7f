import { describe, expect, test } from 'vitest';
import { Delivery } from '../../src/agent/delivery.ts';
import type { Delivered } from '../../src/agent/reconcile.ts';
import { ServiceSender } from '../../src/agent/sender.ts';
import { systemClock } from '../../src/base/clock.ts';
import { createClient } from '../../src/client/client.ts';
import type { ReportedTrial } from '../../src/contract/report.ts';
import { listTrials } from '../../src/ledger/find.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { json, type ScriptedService, type Step, scriptedService, text } from '../client/scripted-service.ts';
import { eachFolder, folder } from '../each-folder.ts';
import { queueTrial } from '../ledger/queue-trial.ts';

eachFolder();

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
const listed = (trial: Record<string, unknown>) =>
  json(200, {
    page: 1,
    pageSize: 20,
    total: 1,
    runs: [
      {
        id: 'run_1',
        trials: [1, 2, 3, 4].map((ordinal) => ({ id: `t${ordinal}`, ordinal, status: 'reported', ...trial })),
      },
    ],
  });
const bare = listed({});
const cut: Step = (response) => response.socket?.destroy();
const delivered = { state: 'delivered' };

/** Answers reports and claims with the steps, and the question for records with `lists`. */
function answers(steps: Step[], lists: Step[]): Step {
  const counts = { steps: 0, lists: 0 };
  const next = (all: Step[], of: 'steps' | 'lists') => all[Math.min(counts[of]++, all.length - 1)];
  return (response, received) => {
    const isList = received.path.endsWith('evals.runs.list');
    return (isList ? next(lists, 'lists') : next(steps, 'steps'))?.(response, received);
  };
}

interface World {
  times?: number;
  /** Whether all of them are there before the first is delivered. */
  atOnce?: boolean;
  sent?: ReportedTrial;
  lease?: number;
  /** How often a command delivers. */
  commands?: number;
  /** What the service shows, one time after another. */
  shows?: Step[];
}

const clientTo = ({ url }: ScriptedService) =>
  createClient({ url, apiKey: 'key-1234', clock: systemClock, retry: { attempts: 1 } });

/** Delivers a queued report of each of `times` trials to a service that answers so. */
async function deliver(steps: Step[], world: World = {}) {
  const { times = 1, atOnce = false, sent = report, lease, commands = 1, shows = [bare] } = world;
  await using service = await scriptedService(answers(steps, shows));
  await using client = clientTo(service);
  using ledger = new Ledger(folder, systemClock);
  const batch = ledger.batches.add({
    service: 'there',
    id: 'batch_1',
    suite: 'S',
    file: undefined,
    runs: [{ id: 'run_1', taskIndex: 0, caseId: 'a', caseName: 'A', variant: 'v' }],
  });
  const warnings: string[] = [];
  const sender = new ServiceSender({ client, ledger, warn: (line) => warnings.push(line) });
  const outcomes: Delivered[] = [];
  for (let ordinal = 1; ordinal <= times; ordinal++) {
    const attempt = ledger.trials.beginAttempt(queueTrial(ledger, batch.key, ordinal));
    const finished = { verdict: 'passed', result: {}, report: { ...sent, ordinal }, lease } as const;
    await ledger.trials.finish(attempt, finished);
    if (atOnce && ordinal < times) continue;
    for (let n = 0; n < commands; n++) {
      ledger.records.run('UPDATE reports SET next_at = 0');
      outcomes.push(...(await drain(ledger, sender)));
    }
  }
  const withdrawn = ledger.records.all('SELECT withdrawn FROM trials').map((row) => row.withdrawn);
  return { outcomes, warnings, sent: sentTo(service), left: ledger.outbox.pending(), withdrawn };
}

/** Delivers as a command does. Returns what became of each report, without what was only sent. */
async function drain(ledger: Ledger, sender: ServiceSender): Promise<Delivered[]> {
  const outcomes: Delivered[] = [];
  await using delivery = new Delivery({
    ledger,
    sender,
    clock: systemClock,
    service: 'there',
    note: () => undefined,
    observe: (_, outcome) => outcome.state !== 'sent' && outcomes.push(outcome),
  });
  await delivery.drain({ ms: 1_000, failures: 1 }, AbortSignal.timeout(10_000));
  return outcomes;
}

function sentTo(service: ScriptedService) {
  // Its reports and claims, without what was asked of its records.
  return service.received.map(({ body }) => JSON.parse(body)).filter(({ id }) => id !== undefined);
}

/** Takes reports by their batch alone. */
const byBatch: Step = (response, received) =>
  (JSON.parse(received.body).id === 'batch_1' ? success : notFound)(response, received);

describe('a report', () => {
  test('goes out once, with the id of its run, and leaves the outbox', async () => {
    const { outcomes, sent, left } = await deliver([success]);
    expect(outcomes).toMatchObject([delivered]);
    expect(sent).toEqual([{ id: 'run_1', trial: report }]);
    expect(left).toEqual([]);
  });

  test('goes out by its batch where the service knows no such run, and the next one at once', async () => {
    const { outcomes, sent } = await deliver([notFound, success], { times: 2 });
    expect(outcomes).toMatchObject([delivered, delivered]);
    expect(sent.map(({ id }) => id)).toEqual(['run_1', 'batch_1', 'batch_1']);
  });

  test('that a service files elsewhere by its batch is told, and waits', async () => {
    const shows = [listed({ status: 'queued' })];
    const { outcomes, left } = await deliver([notFound, success], { shows });
    expect(outcomes).toMatchObject([
      { state: 'parked', answer: expect.stringContaining('filed it under another run') },
    ]);
    expect(left).toHaveLength(1);
  });

  test('goes by its batch alone at first, and none follows where a service files it elsewhere', async () => {
    const shows = [listed({ status: 'queued' })];
    const { outcomes, left, sent } = await deliver([byBatch], { times: 4, atOnce: true, shows });
    expect(sent.filter(({ id }) => id === 'batch_1')).toHaveLength(1);
    expect(outcomes).toMatchObject(Array(4).fill({ state: 'parked' }));
    expect(left).toHaveLength(4);
  });

  test('by its batch is seen at each run, since only the first may be in its place', async () => {
    const ofRun = (id: string, status: string) =>
      json(200, {
        page: 1,
        pageSize: 20,
        total: 1,
        runs: [{ id, trials: [1, 2].map((ordinal) => ({ id: `${id} ${ordinal}`, ordinal, status })) }],
      });
    const shows: Step = (response, received) =>
      (JSON.parse(received.body).caseId === 'a' ? ofRun('run_1', 'reported') : ofRun('run_2', 'queued'))(
        response,
        received,
      );
    await using service = await scriptedService(answers([byBatch], [shows]));
    await using client = clientTo(service);
    using ledger = new Ledger(folder, systemClock);
    const run = { taskIndex: 0, caseId: 'a', caseName: 'A', variant: 'v' };
    const batch = ledger.batches.add({
      service: 'there',
      id: 'batch_1',
      suite: 'S',
      file: undefined,
      runs: [
        { ...run, id: 'run_1' },
        { ...run, id: 'run_2', taskIndex: 1, caseId: 'b' },
      ],
    });
    for (const { key } of ledger.batches.runs(batch.key))
      ledger.queue.add([{ key, setup: undefined, ordinals: [1, 2] }]);
    for (const { key, ordinal } of ledger.queue.ofBatch(batch.key)) {
      const attempt = ledger.trials.beginAttempt(key);
      await ledger.trials.finish(attempt, { verdict: 'passed', result: {}, report: { ...report, ordinal } });
    }
    const sender = new ServiceSender({ client, ledger, warn: () => undefined });
    const outcomes = await drain(ledger, sender);
    expect(outcomes.map(({ state }) => state).sort()).toEqual(['delivered', 'delivered', 'parked', 'parked']);
    expect(ledger.outbox.pending()).toMatchObject(
      Array(2).fill({
        runId: 'run_2',
        answer: expect.stringMatching(/filed it under another run|no such run/),
      }),
    );
    expect(sentTo(service).filter(({ id }) => id === 'batch_1')).toHaveLength(3);
  });

  test('goes out by its run again where the service knows no such batch after all', async () => {
    const { outcomes, sent } = await deliver([notFound, success, notFound, success], { times: 2 });
    expect(outcomes).toMatchObject([delivered, delivered]);
    expect(sent.map(({ id }) => id)).toEqual(['run_1', 'batch_1', 'batch_1', 'run_1']);
  });

  test('of a trial whose output a service refuses does not cost the next one its trajectory', async () => {
    const events = [...report.events, { _tag: 'command' as const, command: 'cat', output: 'a\0b' }];
    const refusal = refusalAt('trial', 'events', 2, 'output');
    const odd = { ...report, events };
    const { sent, warnings } = await deliver([refusal, success, success], { times: 2, sent: odd });
    expect(sent.map(({ trial }) => trial.events.length)).toEqual([3, 1, 3]);
    expect(warnings).toEqual([]);
  });

  test('is parked where the service knows neither run nor batch', async () => {
    const { outcomes, sent, left } = await deliver([notFound]);
    expect(outcomes).toMatchObject([{ state: 'parked' }]);
    expect(sent.map(({ id }) => id)).toEqual(['run_1', 'batch_1']);
    expect(left).toMatchObject([{ report: 'parked', answer: expect.stringContaining('no such run') }]);
  });

  const refusalAt = (...path: (string | number)[]) =>
    json(400, {
      _tag: 'HttpApiDecodeError',
      message: 'bad',
      issues: [{ _tag: 'Type', path, message: 'expected Started' }],
    });

  test.each([
    ['at the event', refusalAt('trial', 'events', 1, '_tag')],
    ['at the trial', refusalAt('trial')],
    ['at no path', refusalAt()],
    ['for their size', json(413, { _tag: 'TooLarge', message: 'too large' })],
  ])(
    'goes out without its trajectory where the service refuses those events %s, told once',
    async (_, refusal) => {
      const { outcomes, sent, warnings } = await deliver([refusal, success], { times: 2 });
      expect(outcomes).toMatchObject([delivered, delivered]);
      expect(sent.map(({ trial }) => trial.events.length)).toEqual([2, 1, 1]);
      expect(warnings).toHaveLength(1);
    },
  );

  test('is parked if the service refuses it without its trajectory too, which is then sent again', async () => {
    const { outcomes, sent, warnings } = await deliver([refusalAt(), refusalAt(), success], { times: 2 });
    expect(outcomes).toMatchObject([{ state: 'parked' }, delivered]);
    expect(sent.map(({ trial }) => trial.events.length)).toEqual([2, 1, 2]);
    expect(warnings).toEqual([]);
  });

  const ofSandbox: ReportedTrial = { ...report, sandboxId: 'box-1' };
  const measured: ReportedTrial = {
    ...report,
    outcome: { passed: true, exitCode: 0, sandboxMs: 12.5, verifySteps: [{ command: 'a', exitCode: 0 }] },
  };

  test.each([
    ['the same sandbox', ofSandbox, { sandboxId: 'box-1' }],
    ['the same measurements', measured, { sandboxMs: 12.5, verifySteps: [{ command: 'a', exitCode: 0 }] }],
  ])('counts as delivered on a conflict if the record has %s', async (_, sent, recorded) => {
    const { outcomes, left } = await deliver([conflict], { sent, shows: [listed(recorded)] });
    expect(outcomes).toMatchObject([delivered]);
    expect(left).toEqual([]);
  });

  test.each([
    ['another sandbox', ofSandbox, { sandboxId: 'box-2' }],
    ['another exit code', measured, { exitCode: 1, sandboxMs: 12.5 }],
    ['other steps', measured, { sandboxMs: 12.5, verifySteps: [{ command: 'b', exitCode: 0 }] }],
    ['no verdict', measured, { sandboxMs: 12.5, status: 'voided' }],
    ['only what many have', measured, { exitCode: 0, verifySteps: [{ command: 'a', exitCode: 0 }] }],
    ['a sandbox that cannot be read', { ...ofSandbox, ...measured }, { sandboxId: 7, exitCode: 0 }],
    ['nothing to compare', ofSandbox, {}],
  ])('is superseded on a conflict at first if the record has %s', async (_, sent, recorded) => {
    const { outcomes, left, withdrawn } = await deliver([conflict], { sent, shows: [listed(recorded)] });
    expect(outcomes).toEqual([
      { state: 'superseded', answer: expect.stringMatching(/^the service has another result of the trial/) },
    ]);
    expect([left, withdrawn]).toEqual([[], ['elsewhere']]);
  });

  test('whose first answer was lost is delivered on a conflict with a record that shows nothing', async () => {
    const { outcomes, left } = await deliver([cut, conflict], { commands: 2 });
    expect(outcomes).toEqual([
      { state: 'queued', answer: expect.any(String) },
      { state: 'delivered', answer: 'the service shows no content to compare' },
    ]);
    expect(left).toEqual([]);
  });

  test('that was accepted is not delivered before the service shows it, however often it is accepted', async () => {
    const { outcomes, left, sent } = await deliver([success], { shows: [listed({ status: 'queued' })] });
    expect(outcomes).toMatchObject(Array(2).fill({ state: 'queued' }));
    expect(left).toMatchObject([
      { answer: 'the service accepted it; it lists the trial without a result', sent: true },
    ]);
    expect(sent).toHaveLength(2);
  });

  test('waits on a conflict when the service shows no result of the trial', async () => {
    const { left } = await deliver([conflict], { shows: [listed({ status: 'queued' })] });
    expect(left).toMatchObject([
      { report: 'queued', answer: expect.stringContaining('it lists the trial without a result') },
    ]);
  });

  test.each<[string, Step]>([
    ['too large, which no documentation calls final', json(413, { _tag: 'TooLarge', message: 'no' })],
    ['failing', json(500, { _tag: 'InternalError', message: 'sorry' })],
    ["a proxy's 404 without a tag", json(404, { message: 'no such page' })],
    ['a 404 with a tag of its own', json(404, { _tag: 'NoRoute', message: 'no route' })],
    ['moved for maintenance', text(302, '', { location: '/maintenance' })],
    ['a 400 that names no issue', json(400, { _tag: 'HttpApiDecodeError', message: 'bad', issues: [] })],
    ['a 400 without a tag', json(400, { message: 'bad request' })],
    ['a page with 200', text(200, '<html>', { 'content-type': 'text/html' })],
  ])('stays queued while the service is %s', async (_, step) => {
    const broken = await deliver([step]);
    expect(broken.left).toMatchObject([{ report: 'queued', tries: 1 }]);
  });

  test.each([
    [401, 'Unauthorized'],
    [403, 'Forbidden'],
  ])('stays queued while the key is refused with %d, since a key can be replaced', async (status, tag) => {
    const refused = await deliver([json(status, { _tag: tag, message: 'not you' })]);
    expect(refused.left).toMatchObject([{ report: 'queued', tries: 1 }]);
  });

  test('of a leased trial carries the number of its lease', async () => {
    const { outcomes, sent } = await deliver([success], { lease: 3 });
    expect(outcomes).toMatchObject([delivered]);
    expect(sent).toEqual([{ id: 'run_1', trial: report, attempt: 3 }]);
  });

  const running = listed({ status: 'running' });
  const own = { ...report, sandboxId: 'own' };

  test('of a leased trial that another agent has reported is superseded', async () => {
    const world = { sent: own, lease: 3, shows: [listed({ sandboxId: 'another' })] };
    const { outcomes, left, withdrawn } = await deliver([conflict], world);
    expect(outcomes).toMatchObject([
      { state: 'superseded', answer: expect.stringContaining('from the sandbox another') },
    ]);
    expect([left, withdrawn]).toEqual([[], ['elsewhere']]);
  });

  test('of a leased trial that another agent runs waits until its lease ends', async () => {
    const held = json(409, { _tag: 'Conflict', message: 'claimed' }, { 'retry-after': '30' });
    const { left } = await deliver([conflict, held], { sent: own, lease: 3, shows: [running] });
    expect(left).toMatchObject([
      { report: 'queued', answer: expect.stringContaining('has claimed the trial') },
    ]);
    expect(left[0]?.nextAt).toBeGreaterThan(Date.now() + 10_000);
  });

  test('of a leased trial that another agent left without a result is claimed again, and reported', async () => {
    const claimed = json(200, { attempt: 5, expiresAt: new Date().toISOString() });
    const world = { sent: own, lease: 3, shows: [listed({ sandboxId: 'own' })] };
    const { outcomes, sent } = await deliver([conflict, claimed, success], world);
    expect(outcomes).toMatchObject([delivered]);
    expect(sent.map(({ attempt }) => attempt)).toEqual([3, undefined, 5]);
  });

  test('goes out without its lease where the service has stopped knowing leases', async () => {
    const { outcomes, sent } = await deliver([refusalAt('attempt'), success], { lease: 3 });
    expect(outcomes).toMatchObject([delivered]);
    expect(sent.map(({ attempt }) => attempt)).toEqual([3, undefined]);
  });

  test('of a run that this agent found is never sent by its batch: its index there is not known', async () => {
    await using service = await scriptedService(notFound, success);
    await using client = clientTo(service);
    using ledger = new Ledger(folder, systemClock);
    ledger.foundRuns.adopt({
      service: 'there',
      batchId: 'batch_1',
      suite: 'S',
      id: 'run_9',
      caseId: 'a',
      caseName: 'A',
      variant: 'v',
      details: {},
      setup: undefined,
      ordinals: [1],
    });
    const [trial] = listTrials(ledger.records, 1);
    if (!trial) throw new Error('the trial is not there');
    const attempt = ledger.trials.beginAttempt(trial.key);
    await ledger.trials.finish(attempt, { verdict: 'passed', result: {}, report });
    const sender = new ServiceSender({ client, ledger, warn: () => undefined });
    expect(await drain(ledger, sender)).toMatchObject([{ state: 'parked' }]);
    expect(sentTo(service).map(({ id }) => id)).toEqual(['run_9']);
  });
});
