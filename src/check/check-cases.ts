import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pLimit from 'p-limit';
import type { Clock } from '../base/clock.ts';
import { type Deadline, startDeadline } from '../base/deadline.ts';
import { type Spent, spentFrom } from '../gateway/budget.ts';
import { BlobStore } from '../ledger/blobs.ts';
import type { PhaseName } from '../record/cause.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { mappedImages } from '../trial/image/mapped-images.ts';
import { runTrial } from '../trial/run-trial.ts';
import type { TrialParts } from '../trial/trial-parts.ts';
import { type StateToCheck, statesOf } from './check-spec.ts';
import type { CheckedCase, CheckedState } from './checked-state.ts';
import type { KeptChecks } from './kept-checks.ts';
import { type Grading, isExpected, stateOf } from './state-of.ts';

/** What happens to a grading, in the words of a display. */
type GradingEvent =
  | { kind: 'planned'; trials: number; spent: (() => Spent) | undefined }
  | { kind: 'phase'; trial: GradedState; phase: PhaseName }
  | { kind: 'finished'; trial: GradedState; verdict: CheckedState['verdicts'][number]; ms: number };

interface GradedState {
  key: string;
  case: string;
  which: string;
}

export interface CheckOptions {
  repeat: number;
  /** What earlier checks found. Without it, everything is graded, and nothing is kept. */
  kept?: KeptChecks | undefined;
  concurrency: number;
  /** How long all gradings of a case may take together, in milliseconds. Default: no limit. */
  caseTimeoutMs?: number | undefined;
  signal: AbortSignal;
  /** Called when the first grading of a state begins. */
  onBegin(id: string, state: CheckedState['state']): void;
  /** Called when a state has its result. */
  onState(id: string, checked: CheckedState): void;
  /** Called after each case. */
  onCase(checked: CheckedCase): void;
  /** Called when gradings begin, change their phase, and end. The verdict `passed` means "as expected". */
  observe(event: GradingEvent): void;
}

/**
 * Grades every case twice: after prepare, which must fail, and after its reference solution, which must pass.
 * No harness runs and no agent's model is called; validators may call their judges. Uses the profile and the
 * sandbox of the first variant.
 */
export async function checkCases(
  plan: SuitePlan,
  parts: Omit<TrialParts, 'blobs'>,
  options: CheckOptions,
): Promise<CheckedCase[]> {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-check-'));
  const limit = pLimit(options.concurrency);
  const checking: Parts = { ...parts, blobs: new BlobStore(folder), limit };
  const { kept, repeat, signal } = options;
  const cases = await Promise.all(
    plan.cases.map(async (planned) => ({
      id: planned.request.id,
      mapped: mappedImages(planned.local.environment),
      states: await Promise.all(statesOf(plan, planned).map((state) => foundBefore(state, kept, repeat))),
    })),
  );
  const open = cases.flatMap(({ states }) => states.filter(({ found }) => !found));
  const { batch } = parts.budgets;
  options.observe({
    kind: 'planned',
    trials: open.length * repeat,
    spent: batch && (() => spentFrom(batch)),
  });
  try {
    return await Promise.all(
      cases.map(async ({ id, mapped, states }) => {
        using time = new CaseTime(parts.clock, options.caseTimeoutMs ?? Number.POSITIVE_INFINITY, signal);
        const checked = {
          id,
          states: await Promise.all(
            states.map(async (one) => {
              const state = await outcomeOf(one, checking, options, time);
              options.onState(id, state);
              return state;
            }),
          ),
          ...(mapped.length > 0 && { mappedImages: mapped }),
        };
        options.onCase(checked);
        return checked;
      }),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Parts = TrialParts & { limit: ReturnType<typeof pLimit> };

interface StateAndResult extends StateToCheck {
  key: string | undefined;
  /** What an earlier check found. */
  found: CheckedState | undefined;
}

async function foundBefore(
  state: StateToCheck,
  kept: KeptChecks | undefined,
  repeat: number,
): Promise<StateAndResult> {
  if (!kept) return { ...state, key: undefined, found: undefined };
  const key = await kept.keyOf(state, repeat);
  return { ...state, key, found: kept.find(key) };
}

async function outcomeOf(
  state: StateAndResult,
  parts: Parts,
  options: CheckOptions,
  time: CaseTime,
): Promise<CheckedState> {
  if (state.found) return state.found;
  const checked = await checkState(state, parts, options, time);
  if (state.key !== undefined) options.kept?.keep(state.key, checked);
  return checked;
}

async function checkState(
  { id, state, spec }: StateToCheck,
  parts: Parts,
  { repeat, signal, observe, onBegin }: CheckOptions,
  time: CaseTime,
): Promise<CheckedState> {
  const check = async (ordinal: number): Promise<Grading> => {
    const trial = { key: JSON.stringify([id, state, ordinal]), case: id, which: `${state} #${ordinal}` };
    let phase: PhaseName | undefined;
    try {
      const limited = time.begin();
      onBegin(id, state);
      const result = await runTrial({ ...spec, ordinal }, parts, limited, (begun) => {
        phase = begun;
        observe({ kind: 'phase', trial, phase });
      });
      const { verdict, startedAt, finishedAt } = result;
      const shown = isExpected(state, result) ? 'passed' : verdict === 'void' ? 'void' : 'failed';
      observe({ kind: 'finished', trial, verdict: shown, ms: finishedAt - startedAt });
      return { kind: 'graded', result };
    } catch (error) {
      signal.throwIfAborted();
      if (!time.isOver) throw error;
      observe({ kind: 'finished', trial, verdict: 'void', ms: 0 });
      return { kind: 'stopped', phase, limitMs: time.limitMs };
    }
  };
  const gradings = await Promise.all(
    Array.from({ length: repeat }, (_, ordinal) => parts.limit(() => check(ordinal))),
  );
  return stateOf(state, gradings);
}

/**
 * The time that the gradings of a case may take together. It begins with the first of them, so a case does
 * not pay for others that are graded before it.
 */
class CaseTime implements Disposable {
  /** Milliseconds; infinite if there is no limit. */
  readonly limitMs: number;
  readonly #clock: Clock;
  readonly #parent: AbortSignal;
  #deadline: Deadline | undefined;

  constructor(clock: Clock, limitMs: number, parent: AbortSignal) {
    this.limitMs = limitMs;
    this.#clock = clock;
    this.#parent = parent;
  }

  /** Whether the time was used up. */
  get isOver(): boolean {
    return this.#deadline?.expired() ?? false;
  }

  /** Begins a grading. The returned signal aborts when the time is used up. Throws if it already is. */
  begin(): AbortSignal {
    const { limitMs } = this;
    if (limitMs !== Number.POSITIVE_INFINITY)
      this.#deadline ??= startDeadline(this.#clock, limitMs, this.#parent);
    const signal = this.#deadline?.signal ?? this.#parent;
    signal.throwIfAborted();
    return signal;
  }

  [Symbol.dispose](): void {
    this.#deadline?.[Symbol.dispose]();
  }
}
