import type { OpenBatch } from '../../agent/batch-run.ts';
import type { BatchTrial } from '../../agent/run-batch.ts';
import type { Reporting } from '../../api/context.ts';
import { BatchHandle } from '../../fleet/batch-handle.ts';
import type { FleetConnection } from '../../fleet/connect.ts';
import { countReported, pullBatch } from '../../fleet/pull-batch.ts';
import { seenWorkers } from '../../fleet/seen-workers.ts';
import { type WatchEvent, watchBatch } from '../../fleet/status.ts';
import type { FleetStorage } from '../../fleet/storage/storage.ts';
import { type BatchOutcome, type TrialSummary, totalOf, trialName } from '../../fleet/workflow/messages.ts';
import { PhaseName } from '../../record/cause.ts';
import { recordVersion, type TrialRecord } from '../../record/trial-record.ts';
import { type Printable, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import type { CommandContext } from '../context.ts';
import { exitCodeOfRates, exitCodes } from '../exit-codes.ts';
import type { Progress } from '../output/progress.ts';
import { storedSummary } from '../output/stored-batch.ts';
import { mergedSummary } from '../output/summary.ts';
import { seeWhy, summaryTable } from '../output/summary-table.ts';
import type { CommonOptions } from '../settings.ts';
import { writeText } from '../write-text.ts';
import { waits } from './status-text.ts';

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
  const outcome = totalOf(outcomes);
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

function noteLost({ lost, lostTrials, outOfBudget }: BatchOutcome, progress: Progress): void {
  if (outOfBudget) progress.note("the batch's budget is spent: its other trials were not run");
  if (lost > 0) progress.note(`${plural(lost, 'trial')} could not be run by any worker`);
  for (const { trial, reason } of lostTrials) progress.note(text`  ${trial}: ${reason}`);
}

/** What one workflow runs. */
export interface Watched {
  workflow: string;
  /** The batch, with only the runs of this workflow. */
  batch: OpenBatch;
  /** How many trials each run has; by default, as many as the batch was planned with. */
  trials?: ReadonlyMap<string, number> | undefined;
}

const phases = new Set<string>(PhaseName.options);

/** Shows what happens on the fleet as `offsite run` shows what happens here. */
export class FleetDisplay {
  readonly #progress: Progress;
  readonly #trials = new Map<string, BatchTrial>();
  /** What each batch has spent. */
  readonly #spent = new Map<string, BatchOutcome['spent']>();
  readonly #reasons = new Set<string>();
  /** How many trials of each batch wait for a reason, by reason and batch. */
  readonly #waiting = new Map<string, Map<string, number>>();
  /** The trials of each batch that workers hold. */
  readonly #held = new Map<string, Set<string>>();

  constructor(batches: readonly Watched[], progress: Progress) {
    this.#progress = progress;
    for (const { batch, trials } of batches) {
      for (const run of batch.runs) {
        for (let ordinal = 0; ordinal < (trials?.get(run.id) ?? batch.plan.trials); ordinal++)
          this.#trials.set(trialName({ run: run.id, ordinal }), { run, ordinal });
      }
    }
    progress.event({
      kind: 'started',
      batchId: batches.map(({ workflow }) => workflow).join(' '),
      trials: [...this.#trials.values()],
      before: 0,
      spent: () => {
        const all = [...this.#spent.values()];
        const sum = (of: 'tokens' | 'usd') => all.reduce((total, one) => total + one[of], 0);
        return { tokens: sum('tokens'), usd: sum('usd') };
      },
    });
  }

  event(batch: string, event: WatchEvent): void {
    if (event.kind === 'note') {
      this.#progress.note(text`${event.message}`);
      return;
    }
    if (event.kind === 'waiting') {
      for (const { reason, trials } of event.waiting) this.#waits(batch, reason, trials);
      return;
    }
    if (event.kind === 'progress') {
      this.#spent.set(batch, event.progress.spent);
      for (const { trial, summary } of event.progress.results) this.#finished(trial, summary);
      return;
    }
    const held = new Set<string>();
    for (const { trial: name, phase = '', lastFailure } of event.trials) {
      const trial = this.#trials.get(name);
      if (lastFailure !== undefined)
        this.#noteOnce(lastFailure, text`a trial was given back: ${lastFailure}`);
      if (!trial || !phases.has(phase)) continue;
      held.add(name);
      this.#progress.event({ kind: 'phase', trial, phase: phase as 'harness' });
    }
    for (const name of this.#held.get(batch) ?? []) {
      const trial = held.has(name) ? undefined : this.#trials.get(name);
      if (trial) this.#progress.event({ kind: 'put-back', trial });
    }
    this.#held.set(batch, held);
  }

  #finished(name: string, { verdict, cause, ms }: TrialSummary): void {
    const trial = this.#trials.get(name);
    if (!trial) return;
    for (const held of this.#held.values()) held.delete(name);
    const result: TrialRecord = {
      version: recordVersion,
      verdict: verdict === 'elsewhere' ? 'void' : verdict,
      ...(cause !== undefined && {
        cause: { kind: 'infrastructure', phase: 'harness', message: `${cause}: the record says more` },
      }),
      startedAt: 0,
      finishedAt: ms,
      phases: [],
      modelUnmeasured: true,
    };
    this.#progress.event({ kind: 'finished', trial, result });
  }

  /** Prints a reason why trials wait once for each batch, with the number of such trials of all batches. */
  #waits(batch: string, reason: string, trials: number): void {
    const waiting = this.#waiting.get(reason) ?? new Map<string, number>();
    waiting.set(batch, trials);
    this.#waiting.set(reason, waiting);
    const all = waiting.values().reduce((sum, one) => sum + one, 0);
    this.#noteOnce(`${batch}: ${reason}`, text`${waits(all)}: ${reason}`);
  }

  /** Prints the message only the first time that its reason occurs. */
  #noteOnce(reason: string, message: Printable): void {
    if (this.#reasons.has(reason)) return;
    this.#reasons.add(reason);
    this.#progress.note(message);
  }
}
