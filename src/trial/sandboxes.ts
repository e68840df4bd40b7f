import type { Container } from '../engine/container.ts';
import type { Engine } from '../engine/engine.ts';
import { containerSpec, engineNetwork } from './container-spec.ts';
import { preparedImage } from './snapshot.ts';
import type { TrialSpec } from './spec.ts';
import { WorkspaceBaselines, type WorkspaceState } from './workspace.ts';

export interface StartedSandbox {
  container: Container;
  /** Its workspace before the harness works there. */
  before: WorkspaceState;
}

/**
 * The sandboxes of a batch's trials. Starting a container and removing it are the two dearest things an engine does, so both can happen
 * while other trials run: `startAhead` begins before the trial has its turn, `giveBack` does not wait. Disposing removes what was
 * not taken and waits for the removals.
 */
export class Sandboxes implements AsyncDisposable {
  readonly #engine: Engine;
  readonly #extraCertificates: Buffer | undefined;
  readonly #baselines = new WorkspaceBaselines();
  readonly #ahead = new Map<TrialSpec, Promise<StartedSandbox>>();
  readonly #removals = new Set<Promise<void>>();

  /** @param extraCertificates the host's, for install and prepare */
  constructor(engine: Engine, extraCertificates: Buffer | undefined) {
    this.#engine = engine;
    this.#extraCertificates = extraCertificates;
  }

  /** A started sandbox from the trial's prepared image: the one begun ahead, if there is one. */
  take(spec: TrialSpec, signal: AbortSignal): Promise<StartedSandbox> {
    const ahead = this.#ahead.get(spec);
    this.#ahead.delete(spec);
    return ahead ?? this.#start(spec, signal);
  }

  /** Begins the sandbox of a trial whose turn comes soon. What goes wrong is thrown to who takes it. */
  startAhead(spec: TrialSpec, signal: AbortSignal): void {
    const starting = this.#start(spec, signal);
    // Taken or not, the failure of one that nobody awaits yet must not end the process.
    starting.catch(() => undefined);
    this.#ahead.set(spec, starting);
  }

  /** Takes a sandbox out of use; it is removed meanwhile. */
  giveBack({ container }: StartedSandbox): void {
    // One that cannot be removed now is removed with all others of this agent when the engine is left.
    const removal = container.remove().catch(() => undefined);
    this.#removals.add(removal);
    removal.finally(() => this.#removals.delete(removal));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const untaken = [...this.#ahead.values()];
    this.#ahead.clear();
    for (const outcome of await Promise.allSettled(untaken)) {
      if (outcome.status === 'fulfilled') this.giveBack(outcome.value);
    }
    await Promise.all(this.#removals);
  }

  async #start(spec: TrialSpec, signal: AbortSignal): Promise<StartedSandbox> {
    const engine = this.#engine;
    const imageId = await preparedImage(engine, spec, this.#extraCertificates, signal);
    const labels = {
      'offsite.batch': spec.batchId,
      'offsite.run': spec.runId,
      'offsite.ordinal': String(spec.ordinal),
    };
    const network = engineNetwork(spec.sandbox);
    const container = await engine.createContainer(
      { ...containerSpec(spec.sandbox, { network, labels }), imageId },
      signal,
    );
    try {
      await container.start(signal);
      return { container, before: await this.#baselines.of(imageId, container, signal) };
    } catch (error) {
      await container[Symbol.asyncDispose]();
      throw error;
    }
  }
}
