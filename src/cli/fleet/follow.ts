import type { OpenBatch } from '../../agent/batch-run.ts';
import type { BatchTrial } from '../../agent/run-batch.ts';
import { BatchHandle } from '../../fleet/batch-handle.ts';
import type { FleetConnection } from '../../fleet/connect.ts';
import { pullBatch } from '../../fleet/pull-batch.ts';
import { countReported } from '../../fleet/reported.ts';
import { seenWorkers } from '../../fleet/seen-workers.ts';
import type { FleetStorage } from '../../fleet/storage/storage.ts';
import { type WatchEvent, watchBatch } from '../../fleet/watch-batch.ts';
import { type BatchOutcome, type TrialSummary, trialName } from '../../fleet/workflow/messages.ts';
import type { TrialResult } from '../../record/trial-record.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import type { CommandContext, CommonOptions, Reporting } from '../context.ts';
import { exitCodeOfRates, exitCodes } from '../failure.ts';
import type { Progress } from '../output/progress.ts';
import { storedBatch } from '../output/stored-batch.ts';
import { summaryOf } from '../output/summary.ts';
import { seeWhy, summaryTable } from '../output/summary-table.ts';
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

const phases = new Set<string>(['sandbox', 'harness', 'collect', 'verify', 'validate']);

/** How often, and after how many milliseconds each time, the service is asked for the last reports. */
const reportTries = 30;
const reportMs = 2_000;

/** Watches a batch until it ends, and prints its results. Returns the exit code. */
export async function follow(
  batch: OpenBatch,
  parts: FollowParts,
  options: FollowOptions,
  signal: AbortSignal,
): Promise<number> {
  const { context, progress, connection, storage, reporting } = parts;
  const { clock, out, redact } = context;
  const { ledger, service, client } = reporting;
  const again = text`the batch continues: offsite fleet attach ${batch.id}`;
  signal.addEventListener('abort', () => progress.note(again), { once: true });
  const { taskQueue } = connection.fleet;
  const shown = new Shown(batch, progress);
  const handle = new BatchHandle(batch.id, connection.client);
  const outcome = await watchBatch(
    handle,
    {
      clock,
      workers: () => seenWorkers(connection, storage, clock),
      taskQueue,
      observe: (event) => shown.event(event),
    },
    signal,
  );
  if (!outcome) {
    progress.note('the batch was canceled');
    return exitCodes.infrastructure;
  }
  const runs = batch.runs.map(({ id, case: { request } }) => ({ id, caseId: request.id }));
  const expected = outcome.passed + outcome.failed + outcome.void + outcome.elsewhere;
  const reported = await progress.step('waiting for the last reports', async () => {
    for (let tried = 1; ; tried++) {
      const count = await countReported(runs, client, signal);
      if (count >= expected || tried >= reportTries) return count;
      await clock.sleep(reportMs, signal);
    }
  });
  await progress.step('getting the records', () =>
    pullBatch({ id: batch.id, service }, { ledger, storage }, signal),
  );
  progress[Symbol.dispose]();

  const summary = {
    ...summaryOf(storedBatch(ledger, ledger.batches.byKey(batch.key)), service, []),
    unreported: Math.max(0, expected - reported),
  };
  if (options.json) out.json({ ...summary, fleet: outcome });
  else {
    out.print(text`\n${summaryTable(summary)}\n`);
    const see = seeWhy([summary], options.dataFolder);
    if (see) progress.note(see);
  }
  if (options.junit !== undefined) {
    const { junitXml } = await import('../output/junit.ts');
    writeText(options.junit, junitXml(summary, redact));
  }
  if (summary.unreported > 0)
    progress.note(`${plural(summary.unreported, 'result')} are not reported yet; their workers keep them`);
  tellLost(outcome, progress);
  const isWhole = outcome.lost === 0 && !outcome.outOfBudget;
  return isWhole ? exitCodeOfRates(summary, options.failUnder) : exitCodes.infrastructure;
}

function tellLost({ lost, lostTrials, outOfBudget }: BatchOutcome, progress: Progress): void {
  if (outOfBudget) progress.note("the batch's budget is spent: its other trials were not run");
  if (lost > 0) progress.note(`${plural(lost, 'trial')} could not be run by any worker`);
  for (const { trial, reason } of lostTrials) progress.note(text`  ${trial}: ${reason}`);
}

/** Shows what happens on the fleet as `offsite run` shows what happens here. */
class Shown {
  readonly #progress: Progress;
  readonly #trials = new Map<string, BatchTrial>();
  readonly #spent = { tokens: 0, usd: 0 };
  readonly #reasons = new Set<string>();
  #held = new Set<string>();

  constructor(batch: OpenBatch, progress: Progress) {
    this.#progress = progress;
    for (const run of batch.runs) {
      for (let ordinal = 0; ordinal < batch.plan.trials; ordinal++)
        this.#trials.set(trialName({ run: run.id, ordinal }), { run, ordinal });
    }
    progress.event({
      kind: 'started',
      batchId: batch.id,
      trials: [...this.#trials.values()],
      spent: () => this.#spent,
    });
  }

  event(event: WatchEvent): void {
    if (event.kind === 'note') {
      this.#progress.note(text`${event.message}`);
      return;
    }
    if (event.kind === 'waiting') {
      for (const { reason, trials } of event.waiting) this.#tellWaiting(reason, trials);
      return;
    }
    if (event.kind === 'progress') {
      Object.assign(this.#spent, event.progress.spent);
      for (const { trial, summary } of event.progress.results) this.#finished(trial, summary);
      return;
    }
    const held = new Set<string>();
    for (const { trial: name, phase = '', lastFailure } of event.trials) {
      const trial = this.#trials.get(name);
      if (lastFailure !== undefined) this.#tellFailure(lastFailure);
      if (!trial || !phases.has(phase)) continue;
      held.add(name);
      this.#progress.event({ kind: 'phase', trial, phase: phase as 'harness' });
    }
    for (const name of this.#held) {
      const trial = held.has(name) ? undefined : this.#trials.get(name);
      if (trial) this.#progress.event({ kind: 'put-back', trial });
    }
    this.#held = held;
  }

  #finished(name: string, { verdict, cause, ms }: TrialSummary): void {
    const trial = this.#trials.get(name);
    if (!trial) return;
    this.#held.delete(name);
    const result: TrialResult = {
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

  /** Tells once why trials wait. */
  #tellWaiting(reason: string, trials: number): void {
    if (this.#reasons.has(reason)) return;
    this.#reasons.add(reason);
    this.#progress.note(text`${waits(trials)}: ${reason}`);
  }

  /** Tells once why trials are offered again. */
  #tellFailure(reason: string): void {
    if (this.#reasons.has(reason)) return;
    this.#reasons.add(reason);
    this.#progress.note(text`a trial was given back: ${reason}`);
  }
}
