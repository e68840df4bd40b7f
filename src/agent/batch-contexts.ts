import type { Clock } from '../base/clock.ts';
import type { Semaphore } from '../base/semaphore.ts';
import type { Engine } from '../engine/engine.ts';
import { openBudget, type Spent, spentFrom } from '../gateway/budget.ts';
import type { BudgetAccount } from '../gateway/gateway.ts';
import type { Runner } from '../harness/runner.ts';
import type { BatchKey } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Budget } from '../suite/model-config.ts';
import type { ObserveBuild } from '../trial/prepare/obtain-image.ts';
import { Sandboxes } from '../trial/prepare/sandboxes.ts';
import type { TrialSpec } from '../trial/spec.ts';
import { type OpenBatch, openBatch } from './batch-run.ts';
import type { ConfigRevisions } from './config-revision.ts';

interface Build {
  /** Resolves when it is known whether the environment must be built. */
  decided: Promise<unknown>;
  done: Promise<void>;
}

interface BuildParts {
  sandboxes: Pick<Sandboxes, 'prepare'>;
  /** Permits to build. An environment that exists needs none. */
  permits: Semaphore;
  /** Called when a run's environment does not exist and is about to be built. */
  onBuild?: (run: string) => void;
}

/**
 * Provides the environments of a batch's trials. The first trial of a run looks up the run's environment and
 * builds it if it does not exist; a few builds run at a time, without a trial's permit. Trials keep their
 * order, but overtake trials whose environment is being built.
 */
export class Builds {
  readonly #parts: BuildParts;
  readonly #ofRuns = new Map<string, Build>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(parts: BuildParts) {
    this.#parts = parts;
  }

  /**
   * Resolves when the trial's image exists, or cannot be built: then the trial's attempt fails with the
   * reason. All trials of a run wait for one build. Rejects only if the signal aborts; the next caller starts
   * the build again.
   */
  async ready(run: string, spec: TrialSpec, signal: AbortSignal): Promise<void> {
    const build = this.#ofRuns.get(run) ?? this.#begin(run, spec, signal);
    this.#turn = this.#turn.then(() => build.decided);
    await this.#turn;
    try {
      await build.done;
    } catch (error) {
      if (this.#ofRuns.get(run) === build) this.#ofRuns.delete(run);
      throw error;
    }
  }

  #begin(run: string, spec: TrialSpec, signal: AbortSignal): Build {
    const { sandboxes, permits, onBuild } = this.#parts;
    const begun = Promise.withResolvers<void>();
    const building = () => {
      begun.resolve();
      onBuild?.(run);
      return permits.acquire(signal);
    };
    const done = sandboxes.prepare(spec, signal, { building }).then(
      () => undefined,
      // Each trial's own attempt meets the same error, and knows its cause.
      () => signal.throwIfAborted(),
    );
    const build = { done, decided: Promise.race([begun.promise, done.catch(() => undefined)]) };
    this.#ofRuns.set(run, build);
    return build;
  }
}

/** What the trials of one batch share on one engine while some of them are in flight. */
export interface EngineContext {
  sandboxes: Sandboxes;
  builds: Builds;
}

/** What the trials of one batch share while some of them are in flight. Each user disposes it once. */
export interface BatchContext extends Disposable {
  on(engine: Engine): EngineContext;
}

interface Kept {
  byEngine: Map<Engine, EngineContext>;
  users: number;
  /** Read when the first trial asks. */
  plan: OpenBatch | undefined;
}

export interface BatchContextParts {
  /** The host's, for install and prepare. */
  extraCertificates: Buffer | undefined;
  runners: readonly Runner[];
  ledger: Ledger;
  clock: Clock;
  revisions: ConfigRevisions;
  /** Permits to build an environment. */
  buildPermits: Semaphore;
  /** Called when the environment of a run, by the service's id, is about to be built. */
  onBuild(run: string): void;
  observeBuild: ObserveBuild;
  /** Whether a batch has queued trials. */
  hasMore(batch: BatchKey): boolean;
}

/** The contexts of the batches that have trials in flight. */
export class BatchContexts implements AsyncDisposable {
  readonly #parts: BatchContextParts;
  readonly #batches = new Map<BatchKey, Kept>();
  readonly #budgets = new Map<BatchKey, BudgetAccount>();
  readonly #closing = new Set<Promise<void>>();

  constructor(parts: BatchContextParts) {
    this.#parts = parts;
  }

  /** The context of a batch, which stays open until all its users have disposed it. */
  take(batch: BatchKey): BatchContext {
    const kept = this.#batches.get(batch) ?? { byEngine: new Map(), users: 0, plan: undefined };
    this.#batches.set(batch, kept);
    kept.users++;
    return {
      on: (engine) => this.#on(engine, kept),
      [Symbol.dispose]: () => {
        if (--kept.users > 0 || !this.#batches.delete(batch)) return;
        this.#close(kept);
        if (!this.#parts.hasMore(batch)) this.#budgets.delete(batch);
      },
    };
  }

  #on(engine: Engine, { byEngine }: Kept): EngineContext {
    const known = byEngine.get(engine);
    if (known) return known;
    const { ledger, extraCertificates, revisions, buildPermits: permits, onBuild } = this.#parts;
    const { host } = revisions.current;
    const { buildLogs } = ledger;
    const sandboxes = new Sandboxes(engine, extraCertificates, { ...this.#parts, host, buildLogs });
    const context = { sandboxes, builds: new Builds({ sandboxes, permits, onBuild }) };
    byEngine.set(engine, context);
    return context;
  }

  /** A batch with its plan, read once while trials of it are in flight. Throws as {@link openBatch} does. */
  planOf(batch: BatchKey): OpenBatch {
    const { ledger } = this.#parts;
    const kept = this.#batches.get(batch);
    const plan = kept?.plan ?? openBatch(ledger.batches.byKey(batch), ledger);
    if (kept) kept.plan = plan;
    return plan;
  }

  /** What the models of a batch have used since this process first saw the batch. */
  budgetOf(batch: BatchKey, limit: Budget): BudgetAccount {
    const kept = this.#budgets.get(batch) ?? openBudget(limit, this.#parts.clock.now());
    this.#budgets.set(batch, kept);
    return kept;
  }

  /** What the models of a batch have used since this process first saw the batch. */
  spentBy(batch: BatchKey): Spent {
    const account = this.#budgets.get(batch);
    return account ? spentFrom(account) : { tokens: 0, usd: 0 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const kept of this.#batches.values()) this.#close(kept);
    this.#batches.clear();
    await Promise.all(this.#closing);
  }

  #close({ byEngine }: Kept): void {
    for (const { sandboxes } of byEngine.values()) {
      const closing = sandboxes[Symbol.asyncDispose]().finally(() => this.#closing.delete(closing));
      this.#closing.add(closing);
    }
  }
}
