import type { OpenBatch } from '../../agent/batch-run.ts';
import type { BatchTrial } from '../../agent/run-batch.ts';
import type { WatchEvent } from '../../fleet/status.ts';
import { type BatchOutcome, type TrialSummary, trialName } from '../../fleet/workflow/messages.ts';
import { PhaseName } from '../../record/cause.ts';
import { recordVersion, type TrialRecord } from '../../record/trial-record.ts';
import { type Printable, text } from '../../text/printable.ts';
import type { Progress } from '../output/progress.ts';
import { waits } from './status-text.ts';

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
