import type { Clock } from '../../clock.ts';
import type { Engine } from '../../engine/engine.ts';
import { openBudget } from '../../gateway/budget.ts';
import type { BudgetAccount } from '../../gateway/gateway.ts';
import type { Runner } from '../../harness/runner.ts';
import type { BatchKey, RunKey } from '../../ledger/batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { daemonLock } from '../../ledger/queue.ts';
import type { Budget } from '../../suite/model-config.ts';
import { Sandboxes } from '../../trial/sandboxes.ts';
import type { OpenBatch } from '../batch-run.ts';
import type { Generations } from './generation.ts';

interface InHand {
  sandboxes: Sandboxes;
  trials: number;
  /** As it was planned, for a batch that this agent started; read when the first trial asks. */
  plan: OpenBatch | undefined;
  /** Of each run, the making of what its sandboxes start from. */
  builds: Map<RunKey, Promise<void>>;
}

export interface BatchesParts {
  engine: Engine;
  /** The host's, for install and prepare. */
  extraCertificates: Buffer | undefined;
  runners: readonly Runner[];
  ledger: Ledger;
  /** The service's name in the ledger. */
  service: string;
  clock: Clock;
  generations: Generations;
}

/** What the trials of one batch share while some of them are in hand. */
export class BatchesInHand implements AsyncDisposable {
  readonly #parts: BatchesParts;
  readonly #batches = new Map<BatchKey, InHand>();
  readonly #budgets = new Map<BatchKey, BudgetAccount>();
  readonly #closing = new Set<Promise<void>>();

  constructor(parts: BatchesParts) {
    this.#parts = parts;
  }

  /** Sandboxes of a batch, kept until as many `release` it as took it. */
  take(batch: BatchKey): Sandboxes {
    const kept = this.#batches.get(batch) ?? {
      sandboxes: this.#openSandboxes(),
      trials: 0,
      plan: undefined,
      builds: new Map(),
    };
    this.#batches.set(batch, kept);
    kept.trials++;
    return kept.sandboxes;
  }

  release(batch: BatchKey): void {
    const kept = this.#batches.get(batch);
    if (!kept || --kept.trials > 0) return;
    this.#batches.delete(batch);
    this.#close(kept.sandboxes);
    const { ledger, service } = this.#parts;
    if (ledger.queue.count({ service, lock: daemonLock, batch }) === 0) this.#budgets.delete(batch);
  }

  /** The plan of a batch that is in hand, read once. */
  planOf(batch: BatchKey, read: () => OpenBatch): OpenBatch {
    const kept = this.#batches.get(batch);
    const plan = kept?.plan ?? read();
    if (kept) kept.plan = plan;
    return plan;
  }

  /** Resolves when what the run's sandboxes start from was built, which is done once; begun again where it was given up. */
  async built(batch: BatchKey, run: RunKey, build: () => Promise<void>): Promise<void> {
    const builds = this.#batches.get(batch)?.builds ?? new Map<RunKey, Promise<void>>();
    const building = builds.get(run) ?? build();
    builds.set(run, building);
    try {
      await building;
    } catch (error) {
      if (builds.get(run) === building) builds.delete(run);
      throw error;
    }
  }

  /** What the models of a batch have used since this process first saw it. */
  budgetOf(batch: BatchKey, limit: Budget): BudgetAccount {
    const kept = this.#budgets.get(batch) ?? openBudget(limit, this.#parts.clock.now());
    this.#budgets.set(batch, kept);
    return kept;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { sandboxes } of this.#batches.values()) this.#close(sandboxes);
    this.#batches.clear();
    await Promise.all(this.#closing);
  }

  #openSandboxes(): Sandboxes {
    const { engine, extraCertificates, runners, clock, generations } = this.#parts;
    return new Sandboxes(engine, extraCertificates, { runners, clock, host: generations.current.host });
  }

  #close(sandboxes: Sandboxes): void {
    const closing = sandboxes[Symbol.asyncDispose]().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}
