import type { Clock } from '../../base/clock.ts';
import { startDeadline } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { Engine } from '../../engine/engine.ts';
import type { ObserveBuild } from '../../trial/prepare/obtain-image.ts';
import { type CheckedPlan, checkSandboxes, needsOf } from '../../trial/prepare/start-image.ts';
import type { TrialSpec } from '../../trial/spec.ts';
import { roomOf } from '../trial-size.ts';
import type { LateEngines } from './late-engines.ts';

/** Engines that an agent runs trials on. */
export interface SomeEngines {
  engine: Engine;
  /** Further engines, if there are several. */
  moreEngines?: readonly Engine[] | undefined;
  /** Engines that were away at the start, if there were any. */
  lateEngines?: LateEngines | undefined;
}

/** All engines that are connected now. */
export function enginesOf({
  engine,
  moreEngines = [],
  lateEngines,
}: SomeEngines): readonly [Engine, ...Engine[]] {
  return [engine, ...moreEngines, ...(lateEngines?.joined ?? [])];
}

/** Whether there are several engines, even if some of them are away. */
export function areSeveral({ moreEngines = [], lateEngines }: SomeEngines): boolean {
  return moreEngines.length > 0 || lateEngines !== undefined;
}

/** Where the engines are, for people: the address of one, or the names and addresses of several. */
export function addressesOf(some: SomeEngines): string {
  const [engine, ...others] = enginesOf(some);
  if (others.length === 0) return engine.address;
  return [engine, ...others].map(({ name, address }) => `${name}: ${address}`).join('; ');
}

/**
 * Throws if there is a sandbox that none of the engines can run with the needs of one of the cases. The error
 * is that of the first engine.
 */
export async function checkOnEngines(
  some: SomeEngines,
  plan: CheckedPlan,
  signal: AbortSignal,
  observeBuild?: ObserveBuild,
): Promise<void> {
  const engines = enginesOf(some);
  if (engines.length === 1) return checkSandboxes(some.engine, plan, signal, observeBuild);
  for (const { sandbox } of new Map(plan.variants.map((one) => [one.sandbox.name, one])).values()) {
    const kinds = Map.groupBy(plan.cases, (one) => {
      const { environment } = one.local;
      return JSON.stringify([needsOf(one), !environment?.image && !environment?.build]);
    });
    for (const [one] of kinds.values()) {
      if (one) await anyPasses(engines, { variants: [{ sandbox }], cases: [one] }, signal, observeBuild);
    }
  }
}

async function anyPasses(
  engines: readonly Engine[],
  plan: CheckedPlan,
  signal: AbortSignal,
  observeBuild: ObserveBuild | undefined,
): Promise<void> {
  const failures: unknown[] = [];
  for (const engine of engines) {
    try {
      return await checkSandboxes(engine, plan, signal, observeBuild);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof OffsiteError)) throw error;
      failures.push(error);
    }
  }
  throw failures[0];
}

/** Milliseconds within which an engine says whether it has an image. */
const answersMs = 30_000;

/** Finds out which engines can run which trials. Asks an engine once for each sandbox. */
export class FitCheck {
  readonly #clock: Clock;
  readonly #known = new Map<Engine, Map<string, boolean>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Whether an engine can run a trial. True also if the engine does not answer, because it may be able to.
   * Rejects if the signal aborts.
   */
  async fits(engine: Engine, spec: TrialSpec, signal: AbortSignal): Promise<boolean> {
    const { sandbox, environment, tests, steps } = spec;
    const local = { environment, tests, steps };
    const key = JSON.stringify([sandbox, environment.image, needsOf({ local })]);
    const known = this.#known.get(engine) ?? new Map<string, boolean>();
    this.#known.set(engine, known);
    const before = known.get(key);
    if (before !== undefined) return before;
    using deadline = startDeadline(this.#clock, answersMs, signal);
    try {
      await checkSandboxes(engine, { variants: [{ sandbox }], cases: [{ local }] }, deadline.signal);
      known.set(key, true);
    } catch (error) {
      signal.throwIfAborted();
      const cannot =
        error instanceof OffsiteError && (error.kind === 'input' || error.code === 'IMAGE_MISSING');
      if (!cannot) return true;
      known.set(key, false);
    }
    return known.get(key) === true;
  }

  /** Asks again from now on, because an image may no longer exist. */
  forget(): void {
    this.#known.clear();
  }
}

/**
 * Trials at a time that cores and memory of the engine's machine allow, for the largest of the sandboxes. At
 * least one.
 */
export function concurrencyFor(
  { capabilities }: Engine,
  sandboxes: readonly { cpus: number; memory: number }[],
): number {
  const cpus = Math.max(...sandboxes.map((sandbox) => sandbox.cpus));
  const memory = Math.max(...sandboxes.map((sandbox) => sandbox.memory));
  const byCores = Math.floor(capabilities.cpus / cpus);
  const byMemory = Math.floor(roomOf(capabilities).memory / memory);
  return Math.max(1, Math.min(byCores, byMemory));
}

/** The same for several engines together, some of which may have a limit of trials. */
export function concurrencyOn(
  engines: SomeEngines,
  sandboxes: readonly { cpus: number; memory: number }[],
): number {
  return enginesOf(engines).reduce((sum, engine) => sum + trialsOn(engine, sandboxes), 0);
}

/** The engine's own limit of trials, or what its cores and memory allow. */
export function trialsOn(engine: Engine, sandboxes: readonly { cpus: number; memory: number }[]): number {
  return engine.trials ?? concurrencyFor(engine, sandboxes);
}
