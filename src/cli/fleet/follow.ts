import type { OpenBatch } from '../../agent/batch-run.ts';
import type { Reporting } from '../../api/context.ts';
import { BatchHandle } from '../../fleet/batch-handle.ts';
import type { FleetConnection } from '../../fleet/connect.ts';
import { countReported, pullBatch } from '../../fleet/pull-batch.ts';
import { seenWorkers } from '../../fleet/seen-workers.ts';
import { type WatchEvent, watchBatch } from '../../fleet/status.ts';
import type { FleetStorage } from '../../fleet/storage/storage.ts';
import { type BatchOutcome, countNames, noneDone } from '../../fleet/workflow/messages.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import type { CommandContext } from '../context.ts';
import { exitCodeOfRates, exitCodes } from '../exit-codes.ts';
import type { Progress } from '../output/progress.ts';
import { storedSummary } from '../output/stored-batch.ts';
import { mergedSummary } from '../output/summary.ts';
import { seeWhy, summaryTable } from '../output/summary-table.ts';
import type { CommonOptions } from '../settings.ts';
import { writeText } from '../write-text.ts';
import { FleetDisplay, type Watched } from './fleet-display.ts';

export interface FollowOptions extends CommonOptions {
  failUnder?: number | undefined;
  junit?: string | undefined;
}

export interface FollowParts {
  context: CommandContext;
  progress: Progress;
  connection: FleetConnection;
  storage: FleetStorage;
  reporting: Reporting;
}

export function watched(batch: OpenBatch): Watched {
  return { workflow: batch.id, batch };
}

/** Calls made while an answer is awaited get the same answer: batches watched together ask once. */
function shared<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let asked: Promise<Answer> | undefined;
  return () => {
    asked ??= ask().finally(() => {
      asked = undefined;
    });
    return asked;
  };
}

/** How often, and after how many milliseconds each time, the service is asked for the last reports. */
const reportTries = 30;
const reportMs = 2_000;

/**
 * Watches batches, which are shown as one, until all end, and prints their results. Returns the exit code.
 */
export async function follow(
  batches: readonly Watched[],
  parts: FollowParts,
  options: FollowOptions,
  signal: AbortSignal,
): Promise<number> {
  const { context, progress, connection, storage, reporting } = parts;
  const { clock, out, redact } = context;
  const { ledger, service, client } = reporting;
  const ids = batches.map(({ workflow }) => workflow).join(' ');
  const again = text`the fleet continues: offsite fleet attach ${ids}`;
  signal.addEventListener('abort', () => progress.note(again), { once: true });
  const shown = new FleetDisplay(batches, progress);
  const { taskQueue } = connection.fleet;
  const workers = shared(() => seenWorkers(connection, storage, clock));
  const ended = await Promise.all(
    batches.map(({ workflow }) => {
      const observe = (event: WatchEvent) => shown.event(workflow, event);
      const handle = new BatchHandle(workflow, connection.client);
      return watchBatch(handle, { clock, workers, taskQueue, observe }, signal);
    }),
  );
  const outcomes = ended.filter((one) => one !== undefined);
  if (outcomes.length < batches.length)
    progress.note(
      batches.length === 1 ? 'the batch was canceled' : 'not all batches ended: some were canceled',
    );
  if (outcomes.length === 0) return exitCodes.infrastructure;
  const outcome = sumOf(outcomes);
  const runs = batches.flatMap(({ batch }) =>
    batch.runs.map(({ id, case: { request } }) => ({ id, caseId: request.id })),
  );
  const expected = outcome.passed + outcome.failed + outcome.void + outcome.elsewhere;
  const reported = await progress.step('waiting for the last reports', async () => {
    for (let tried = 1; ; tried++) {
      const count = await countReported(runs, client, signal);
      if (count >= expected || tried >= reportTries) return count;
      await clock.sleep(reportMs, signal);
    }
  });
  // The workflows of a batch and of its rerun belong to the same batch.
  const own = new Map(batches.map(({ batch }) => [batch.id, batch])).values().toArray();
  await progress.step('getting the records', async () => {
    for (const { id } of own) await pullBatch({ id, service }, { ledger, storage }, signal);
  });
  progress[Symbol.dispose]();

  const summaries = own.map(({ key }) => storedSummary(ledger, ledger.batches.byKey(key)));
  const [first, ...more] = summaries;
  if (!first) throw new Error('no batch was watched');
  const whole = more.length === 0 ? first : mergedSummary([first, ...more]);
  const summary = { ...whole, unreported: Math.max(0, expected - reported) };
  if (options.json) out.json({ ...summary, fleet: outcome });
  else {
    out.print(text`\n${summaryTable(summary)}\n`);
    const see = seeWhy(summaries, options.dataFolder);
    if (see) progress.note(see);
  }
  if (options.junit !== undefined) {
    const { junitXml } = await import('../output/junit.ts');
    writeText(options.junit, junitXml(summary, redact));
  }
  if (summary.unreported > 0)
    progress.note(`${plural(summary.unreported, 'result')} are not reported yet; their workers keep them`);
  noteLost(outcome, progress);
  const isWhole = outcomes.length === batches.length && outcome.lost === 0 && !outcome.outOfBudget;
  return isWhole ? exitCodeOfRates(summary, options.failUnder) : exitCodes.infrastructure;
}

function sumOf(outcomes: readonly BatchOutcome[]): BatchOutcome {
  const sum: BatchOutcome = { ...noneDone(), outOfBudget: false, lostTrials: [] };
  for (const { spent, outOfBudget, lostTrials, ...counts } of outcomes) {
    for (const name of countNames) sum[name] += counts[name];
    sum.spent.tokens += spent.tokens;
    sum.spent.usd += spent.usd;
    sum.outOfBudget ||= outOfBudget;
    sum.lostTrials.push(...lostTrials);
  }
  return sum;
}

function noteLost({ lost, lostTrials, outOfBudget }: BatchOutcome, progress: Progress): void {
  if (outOfBudget) progress.note("the batch's budget is spent: its other trials were not run");
  if (lost > 0) progress.note(`${plural(lost, 'trial')} could not be run by any worker`);
  for (const { trial, reason } of lostTrials) progress.note(text`  ${trial}: ${reason}`);
}
