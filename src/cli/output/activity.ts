import type { CircuitEvent } from '../../agent/circuits.ts';
import type { BatchEvent, BatchTrial } from '../../agent/run-batch.ts';
import type { WorkEvent } from '../../agent/worker/worker-parts.ts';
import type { Spent } from '../../gateway/budget.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import type { PhaseName } from '../../record/cause.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { type BuildEvent, isOpen, type OpenBuildState } from '../../trial/prepare/obtain-image.ts';

/** A trial as a display names it. The texts are foreign. */
export interface NamedTrial {
  key: string;
  case: string;
  /** What distinguishes it from the case's other trials: `variant #0`. */
  which: string;
}

export type ActivityEvent =
  /** `trials` more trials will run. `spent` returns what models have used for them so far. */
  | { kind: 'planned'; trials: number; spent?: (() => Spent) | undefined }
  | { kind: 'phase'; trial: NamedTrial; phase: PhaseName }
  /** The trial no longer runs, and will run again. */
  | { kind: 'left'; trial: NamedTrial }
  | { kind: 'finished'; trial: NamedTrial; verdict: TrialRecord['verdict']; ms: number }
  | { kind: 'build'; build: BuildEvent }
  | { kind: 'step'; title: string; state: 'begins' | 'ends' }
  | CircuitEvent;

/** What an event of a batch or of a worker changes; undefined if nothing. */
export function activityOf(event: BatchEvent | WorkEvent): ActivityEvent | undefined {
  switch (event.kind) {
    case 'started':
      return { kind: 'planned', trials: event.trials.length, spent: event.spent };
    case 'phase':
      return { ...event, trial: named(event.trial) };
    case 'retried':
    case 'put-back':
    case 'left':
      return { kind: 'left', trial: named(event.trial) };
    case 'not-claimed':
      return event.hadBegun ? { kind: 'left', trial: named(event.trial) } : undefined;
    case 'finished': {
      const { verdict, startedAt, finishedAt } = event.result;
      return { kind: 'finished', trial: named(event.trial), verdict, ms: finishedAt - startedAt };
    }
    case 'build':
    case 'step':
    case 'waiting':
    case 'resumed':
      return event;
    default:
      return undefined;
  }
}

function named(trial: BatchTrial | StoredTrial): NamedTrial {
  if ('caseId' in trial) {
    const { key, caseId, runId, ordinal } = trial;
    return { key: String(key), case: caseId, which: `${runId} #${ordinal}` };
  }
  const { run, ordinal } = trial;
  const which = `${run.variant.name} #${ordinal}`;
  return { key: `${run.id} ${ordinal}`, case: run.case.request.id, which };
}

/** What is going on at a moment. Everything in progress is listed longest first. */
export interface ActivityState {
  /** Milliseconds since the first trials were planned; since the beginning, if none were. */
  forMs: number;
  planned: number;
  done: number;
  verdicts: Record<TrialRecord['verdict'], number>;
  spent: Spent;
  /** Undefined if nothing was measured yet, and while trials wait for something that is down. */
  leftMs: number | undefined;
  steps: Timed<{ title: string }>[];
  outages: Timed<{ of: string; reason: string }>[];
  builds: Timed<{ what: string; state: OpenBuildState }>[];
  running: Timed<{ trial: NamedTrial; phase: PhaseName }>[];
}

type Timed<What> = What & { forMs: number };
type Since<What> = What & { since: number };

/** Follows what is going on, so that it can be shown at any time. */
export class Activity {
  readonly #now: () => number;
  readonly #verdicts = { passed: 0, failed: 0, void: 0 };
  readonly #steps = new Map<string, Since<{ title: string }>>();
  readonly #outages = new Map<string, Since<{ of: string; reason: string }>>();
  readonly #builds = new Map<string, Since<{ what: string; state: OpenBuildState }>>();
  readonly #running = new Map<string, Since<{ trial: NamedTrial; phase: PhaseName }>>();
  readonly #accounts: { of: () => Spent; last: Spent }[] = [];
  /** The trials that ended with a verdict. */
  readonly #finished = { trials: 0, ms: 0 };
  #since: number;
  #planned = 0;
  /** The most trials that have run at a time. */
  #atATime = 0;

  /** @param now milliseconds, never set back */
  constructor(now: () => number) {
    this.#now = now;
    this.#since = now();
  }

  /** Whether something is in progress, or down. */
  get isBusy(): boolean {
    return this.isWorking || this.#outages.size > 0;
  }

  get isWorking(): boolean {
    return [this.#steps, this.#builds, this.#running].some(({ size }) => size > 0);
  }

  update(event: ActivityEvent): void {
    const since = this.#now();
    switch (event.kind) {
      case 'planned':
        if (this.#planned === 0) this.#since = since;
        this.#planned += event.trials;
        if (event.spent) this.#accounts.push({ of: event.spent, last: { tokens: 0, usd: 0 } });
        return;
      case 'phase': {
        const { trial, phase } = event;
        this.#running.set(trial.key, { trial, phase, since: this.#running.get(trial.key)?.since ?? since });
        this.#atATime = Math.max(this.#atATime, this.#running.size);
        return;
      }
      case 'left':
        this.#running.delete(event.trial.key);
        return;
      case 'finished':
        this.#running.delete(event.trial.key);
        this.#verdicts[event.verdict]++;
        // A void trial ended early, and says nothing about the others.
        if (event.verdict === 'void') return;
        this.#finished.trials++;
        this.#finished.ms += event.ms;
        return;
      case 'build':
        this.#build(event.build, since);
        return;
      case 'step':
        if (event.state === 'ends') this.#steps.delete(event.title);
        else this.#steps.set(event.title, { title: event.title, since });
        return;
      case 'waiting':
        this.#outages.set(event.for, { of: event.for, reason: event.reason, since });
        return;
      case 'resumed':
        this.#outages.delete(event.for);
    }
  }

  state(): ActivityState {
    const now = this.#now();
    const { passed, failed, void: voided } = this.#verdicts;
    const done = passed + failed + voided;
    return {
      forMs: now - this.#since,
      planned: this.#planned,
      done,
      verdicts: { ...this.#verdicts },
      spent: this.#spentSoFar(),
      leftMs: this.#left(now, this.#planned - done),
      steps: timed(this.#steps, now),
      outages: timed(this.#outages, now),
      builds: timed(this.#builds, now),
      running: timed(this.#running, now),
    };
  }

  #build({ id, what, state }: BuildEvent, since: number): void {
    const known = this.#builds.get(id);
    // A progress report of a build does not restart it.
    if (isOpen(state) && known?.state === state.kind) known.what = what;
    else if (isOpen(state)) this.#builds.set(id, { what, state: state.kind, since });
    else this.#builds.delete(id);
  }

  /**
   * As if each trial took as long as those before it, and as many ran at a time as ever. Short trials finish
   * first, so one that already runs for longer counts as one of those before.
   */
  #left(now: number, trials: number): number | undefined {
    if (this.#outages.size > 0 || this.#finished.trials === 0) return undefined;
    const ran = [...this.#running.values()].map(({ since }) => now - since);
    const longer = ran.filter((ms) => ms > this.#finished.ms / this.#finished.trials);
    const known = this.#finished.ms + longer.reduce((sum, ms) => sum + ms, 0);
    const mean = known / (this.#finished.trials + longer.length);
    const done = ran.reduce((sum, ms) => sum + Math.min(mean, ms), 0);
    const left = (mean * trials - done) / this.#atATime;
    return left > 0 ? left : undefined;
  }

  /** What all accounts have spent. An account is closed after its last trial; its highest values count. */
  #spentSoFar(): Spent {
    const sum: Spent = { tokens: 0, usd: 0 };
    for (const account of this.#accounts) {
      const { tokens, usd, isPartial } = account.of();
      account.last.tokens = Math.max(account.last.tokens, tokens);
      account.last.usd = Math.max(account.last.usd, usd);
      sum.tokens += account.last.tokens;
      sum.usd += account.last.usd;
      if (isPartial) account.last.isPartial = true;
      if (account.last.isPartial) sum.isPartial = true;
    }
    return sum;
  }
}

function timed<What extends object>(open: Map<string, Since<What>>, now: number): Timed<What>[] {
  return [...open.values()]
    .sort((one, other) => one.since - other.since)
    .map(({ since, ...what }) => ({ ...(what as unknown as What), forMs: now - since }));
}
