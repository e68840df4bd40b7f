import { type BackoffLimits, backoff, type Clock } from '../../base/clock.ts';
import { pause } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { Engine } from '../../engine/engine.ts';
import type { ObserveBuild } from '../../trial/prepare/obtain-image.ts';
import { type CheckedPlan, checkSandboxes, needsOf } from '../../trial/prepare/start-image.ts';
import { roomOf } from '../admission.ts';

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

/** Milliseconds between two tries of an engine that was away at the start. */
const waits: BackoffLimits = { first: 2_000, longest: 30_000 };

/** An engine that did not answer at the start. */
interface LateEngine {
  name: string;
  /** As the configuration has it. */
  address: string;
  /** The most trials at a time, if that is set. */
  trials: number | undefined;
  connect(signal: AbortSignal): Promise<Engine>;
}

interface LateEnginesParts {
  late: readonly LateEngine[];
  clock: Clock;
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /** Called with each engine before its first trial. The callee disposes it. */
  joins(engine: Engine): void;
  /** Called when an engine answers, and cannot be used. It is not tried again. */
  refused(name: string, error: OffsiteError): void;
}

/** Connects to the engines that were away at the start, when they come back. */
export class LateEngines implements AsyncDisposable {
  readonly #parts: LateEnginesParts;
  readonly #disposed = new AbortController();
  readonly #away: Set<LateEngine>;
  readonly #joined: Engine[] = [];
  readonly #listeners = new Set<(engine: Engine) => void>();
  readonly #tries: Promise<unknown>;

  constructor(parts: LateEnginesParts) {
    this.#parts = parts;
    this.#away = new Set(parts.late);
    this.#tries = Promise.all(parts.late.map((one) => this.#keepTrying(one)));
    // Disposing rejects with the error; here it only must not count as unhandled.
    this.#tries.catch(() => undefined);
  }

  /** The engines that are still away. */
  get away(): readonly LateEngine[] {
    return [...this.#away];
  }

  /** The engines that have come back. */
  get joined(): readonly Engine[] {
    return this.#joined;
  }

  /** Calls the listener with each engine that comes back from now on. */
  onJoin(listener: (engine: Engine) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed.abort();
    await this.#tries;
  }

  async #keepTrying(late: LateEngine): Promise<void> {
    const { clock, random, joins, refused } = this.#parts;
    const { signal } = this.#disposed;
    for (let failures = 1; ; failures += 1) {
      // The wait is never 0, or trying would be a busy loop.
      await pause(clock, 250 + backoff(failures, waits, random), signal);
      if (signal.aborted) return;
      try {
        const engine = await late.connect(signal);
        this.#away.delete(late);
        joins(engine);
        this.#joined.push(engine);
        for (const listener of this.#listeners) listener(engine);
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof OffsiteError)) throw error;
        if (error.kind === 'input') return refused(late.name, error);
      }
    }
  }
}
