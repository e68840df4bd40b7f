import type { Client } from '@temporalio/client';
import type { OpenBatch } from '../../agent/batch-run.ts';
import type { BatchTrial } from '../../agent/run-batch.ts';
import { BatchHandle } from '../../fleet/batch-handle.ts';
import { pullBatch } from '../../fleet/pull-batch.ts';
import { countReported } from '../../fleet/reported.ts';
import type { FleetStorage } from '../../fleet/storage/storage.ts';
import { type WatchEvent, watchBatch } from '../../fleet/watch-batch.ts';
import {
  type BatchOutcome,
  countNames,
  noneDone,
  type TrialSummary,
  trialName,
} from '../../fleet/workflow/messages.ts';
import type { TrialResult } from '../../record/trial-record.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import type { CommandContext, CommonOptions, Reporting } from '../context.ts';
import { exitCodeOfRates, exitCodes } from '../failure.ts';
import { mergedSummary } from '../output/merged-summary.ts';
import type { Progress } from '../output/progress.ts';
import { storedBatch } from '../output/stored-batch.ts';
import { summaryOf } from '../output/summary.ts';
import { seeWhy, summaryTable } from '../output/summary-table.ts';
import { writeText } from '../write-text.ts';

export interface FollowOptions extends CommonOptions {
  failUnder?: number | undefined;
  junit?: string | undefined;
}

export interface FollowParts {
  context: CommandContext;
  progress: Progress;
  temporal: Client;
  storage: FleetStorage;
  reporting: Reporting;
}

/** What one workflow runs. */
export interface Watched {
  workflow: string;
  /** With the runs that the workflow has. */
  batch: OpenBatch;
  /** How many trials each run has, where that is not what the batch was planned with. */
  trials?: ReadonlyMap<string, number> | undefined;
}

export function watched(batch: OpenBatch): Watched {
  return { workflow: batch.id, batch };
}

const phases = new Set<string>(['sandbox', 'harness', 'collect', 'verify', 'validate']);

/** How often, and after how many milliseconds each time, the service is asked for the last reports. */
const reportTries = 30;
const reportMs = 2_000;

/** Watches batches, which are shown as one, until all end, and prints their results. Returns the exit code. */
export async function follow(
  batches: readonly Watched[],
  parts: FollowParts,
  options: FollowOptions,
  signal: AbortSignal,
): Promise<number> {
  const { context, progress, temporal, storage, reporting } = parts;
  const { clock, out, redact } = context;
  const { ledger, service, client } = reporting;
  const ids = batches.map(({ workflow }) => workflow).join(' ');
  const again = text`the fleet goes on: offsite fleet attach ${ids}`;
  signal.addEventListener('abort', () => progress.note(again), { once: true });
  const shown = new Shown(batches, progress);
  const ended = await Promise.all(
    batches.map(({ workflow }) => {
      const observe = (event: WatchEvent) => shown.event(workflow, event);
      return watchBatch(new BatchHandle(workflow, temporal), { clock, observe }, signal);
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
  // A batch and its rerun are one batch.
  const own = new Map(batches.map(({ batch }) => [batch.id, batch])).values().toArray();
  await progress.step('getting the records', async () => {
    for (const { id } of own) await pullBatch({ id, service }, { ledger, storage }, signal);
  });
  progress[Symbol.dispose]();

  const summaries = own.map(({ key }) =>
    summaryOf(storedBatch(ledger, ledger.batches.byKey(key)), service, []),
  );
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
  tellLost(outcome, progress);
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

function tellLost({ lost, lostTrials, outOfBudget }: BatchOutcome, progress: Progress): void {
  if (outOfBudget) progress.note("the batch's budget is spent: its other trials were not run");
  if (lost > 0) progress.note(`${plural(lost, 'trial')} could not be run by any worker`);
  for (const { trial, reason } of lostTrials) progress.note(text`  ${trial}: ${reason}`);
}

/** Shows what happens on the fleet as `offsite run` shows what happens here. */
class Shown {
  readonly #progress: Progress;
  readonly #trials = new Map<string, BatchTrial>();
  /** What each batch has spent. */
  readonly #spent = new Map<string, BatchOutcome['spent']>();
  readonly #reasons = new Set<string>();
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
      spent: () => {
        const spent = { tokens: 0, usd: 0 };
        for (const { tokens, usd } of this.#spent.values()) {
          spent.tokens += tokens;
          spent.usd += usd;
        }
        return spent;
      },
    });
  }

  event(batch: string, event: WatchEvent): void {
    if (event.kind === 'note') {
      this.#progress.note(text`${event.message}`);
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
      if (lastFailure !== undefined) this.#tellFailure(lastFailure);
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

  /** Tells once why trials are offered again. */
  #tellFailure(reason: string): void {
    if (this.#reasons.has(reason)) return;
    this.#reasons.add(reason);
    this.#progress.note(text`a trial was given back: ${reason}`);
  }
}
