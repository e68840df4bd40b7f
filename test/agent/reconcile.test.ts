import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AtService, actions, type InLedger, reconcile } from '../../src/agent/reconcile.ts';
import { systemClock } from '../../src/base/clock.ts';
import type { Client } from '../../src/client/client.ts';
import type { StartResponse } from '../../src/contract/definition.ts';
import type { ReportedTrial } from '../../src/contract/report.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { type FlakyService, openFlakyService } from '../cli/flaky-service.ts';
import { openPlace, type Place } from '../cli/place.ts';
import { clientOf } from '../client/client-of.ts';
import { queueTrial } from '../ledger/queue-trial.ts';
import { startRequest } from '../service/test-service.ts';

const reportFrom = (sandboxId: string): ReportedTrial => ({
  caseName: 'a',
  ordinal: 0,
  taskIndex: 0,
  sandboxId,
  events: [],
  outcome: { passed: true, verifySteps: [{ command: 'true', exitCode: 0 }] },
});

/** One service for all tests of the file: each trial has a run of its own there. */
let place: Place;
let service: FlakyService;
let client: Client;
let ledgers = 0;
beforeAll(async () => {
  place = openPlace();
  service = await openFlakyService(place);
  client = clientOf(
    { url: service.env.OFFSITE_URL },
    { apiKey: service.env.OFFSITE_API_KEY, clock: systemClock, retry: { attempts: 1 } },
  );
});
afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await service?.[Symbol.asyncDispose]();
  place?.[Symbol.dispose]();
});

/** A ledger, and the service, whose trial is in one of the states of the table. */
async function world(inLedger: InLedger, atService: AtService) {
  const request = startRequest();
  const { id, runs } = (await service.ask('evals.start', { ...request, local: true })) as StartResponse;
  const [run = { id: '', caseId: '', variantIndex: 0 }] = runs;
  const report = { ...reportFrom('ours'), caseName: request.cases[0]?.name ?? '' };
  const record = (sandboxId: string) =>
    service.ask('evals.reportTrial', { id: run.id, trial: { ...report, sandboxId } });
  if (atService === 'other') await record('of another process');
  if (atService === 'ours' || atService === 'bare') await record('ours');
  service.alter = (operation, body) => {
    if (operation !== 'evals.runs.list') return body;
    const page = JSON.parse(body);
    if (atService === 'absent') return JSON.stringify({ ...page, total: 0, runs: [] });
    if (atService !== 'bare' && atService !== 'unclear') return body;
    type Listed = { trials: { id: string; ordinal: number; status: string }[] };
    const runs = page.runs.map((listed: Listed) => ({
      ...listed,
      trials: listed.trials.map(({ id, ordinal, status }) => {
        return { id, ordinal, status: atService === 'unclear' ? 'assigned' : status };
      }),
    }));
    return JSON.stringify({ ...page, runs });
  };
  const ledger = new Ledger(join(place.folder, `ledger-${ledgers++}`), systemClock);
  const batch = ledger.batches.add({
    service: 'there',
    id,
    suite: 'S',
    file: undefined,
    runs: [{ ...run, taskIndex: 0, caseName: 'A', variant: 'v' }],
  });
  const trial = queueTrial(ledger, batch.key, 0);
  if (inLedger === 'taken') await ledger.trials.take(trial, 'passed', { verdict: 'passed' });
  else if (inLedger !== 'open') {
    const attempt = ledger.trials.beginAttempt(trial);
    await ledger.trials.finish(attempt, { verdict: 'passed', result: {}, report });
  }
  const { outbox } = ledger;
  if (inLedger === 'sent' || inLedger === 'delivered') outbox.sending(trial);
  if (inLedger === 'parked') outbox.become(trial, 'parked', { answer: 'no', version: '1' });
  if (inLedger === 'superseded') outbox.become(trial, 'superseded', { answer: 'another has it' });
  if (inLedger === 'delivered') {
    outbox.become(trial, 'delivered');
    ledger.records.run('UPDATE reports SET since = 1 WHERE trial = ?', trial);
  }
  const notes: string[] = [];
  const [known] = ledger.batches.runs(batch.key);
  const parts = { client, ledger, note: (message: string) => notes.push(message) };
  const look = () =>
    reconcile([{ key: known?.key ?? 0, id: run.id, caseId: run.caseId }], parts, undefined, { open: true });
  return { ledger, trial, look, notes };
}

/** How the ledger shows that an action was done. */
const afterwards = {
  run: { trial: 'queued', report: undefined },
  take: { trial: 'finished', report: undefined },
  send: { trial: 'finished', report: 'queued' },
  deliver: { trial: 'finished', report: 'delivered' },
  supersede: { trial: 'finished', report: 'superseded' },
  wait: { trial: 'finished', report: 'parked' },
};

const cells = Object.entries(actions).flatMap(([inLedger, row]) =>
  Object.entries(row).map(([atService, action]) => [inLedger, atService, action] as const),
);

describe('a trial, by what the ledger has and what the service shows', () => {
  test.each(cells)('%s, and there %s: %s', async (inLedger, atService, action) => {
    const { ledger, trial, look } = await world(inLedger as InLedger, atService as AtService);
    using _ledger = ledger;
    const state = () => {
      const row = ledger.records.get(
        `SELECT trials.state AS trial, reports.state AS report
         FROM trials LEFT JOIN reports ON reports.trial = trials.key WHERE trials.key = ?`,
        trial,
      );
      return { trial: row?.trial, report: row?.report ?? undefined };
    };
    const before = state();
    await look();
    expect(state()).toEqual(action === 'none' ? before : afterwards[action]);
    if (action === 'take')
      // The bare record shows no verdict.
      expect(ledger.trials.result(trial)).toMatchObject({
        fromService: true,
        verdict: atService === 'bare' ? 'void' : 'passed',
      });
    // Level triggered: nothing more happens, except where the service shows what it showed.
    const settled = state();
    await look();
    expect(state()).toEqual(settled);
  });

  test('what the service has lost is told with one message, and is due at once', async () => {
    const { ledger, look, notes } = await world('delivered', 'open');
    using _ledger = ledger;
    expect(await look()).toMatchObject({ lost: 1 });
    expect(notes).toEqual([
      'the service has no result of 1 trial whose reports it had accepted; they are sent again',
    ]);
    const due = { service: 'there', now: Date.now(), limit: 4 };
    expect(ledger.outbox.due(due)).toMatchObject([{ report: 'queued', sent: true }]);
  });
});

test('the documentation shows the table', () => {
  const [, ...rows] = /\| in the ledger \|[^\n]*\n(.*?)\n\n/s
    .exec(readFileSync(join(import.meta.dirname, '../../docs/reference/service.md'), 'utf8'))?.[1]
    ?.split('\n') ?? [''];
  const shown = rows.map((row) =>
    row
      .split('|')
      .map((cell) => cell.trim().replaceAll('`', ''))
      .slice(1, -1),
  );
  expect(shown).toEqual(
    Object.entries(actions).map(([inLedger, row]) => [inLedger, ...Object.values(row).map(String)]),
  );
});
