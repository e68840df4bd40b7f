import { type Clock, systemClock } from '../../base/clock.ts';
import { infrastructureError, type OffsiteError } from '../../base/offsite-error.ts';
import type { Manifest } from '../../engine/archive/stored-file.ts';
import type { Container } from '../../engine/container.ts';
import type { Engine, KeepRequest } from '../../engine/engine.ts';
import type { Runner } from '../../harness/runner.ts';
import type { BuildLogs } from '../../ledger/build-logs.ts';
import { TextPack } from '../collect/read-workspace.ts';
import type { OwnChanges } from '../collect/system-changes.ts';
import type { TrialSpec } from '../spec.ts';
import { type HostEnvironment, noHostEnvironment } from './environment.ts';
import type { PreparationOptions } from './image-parts.ts';
import { SandboxMaker } from './make-sandbox.ts';
import type { ObserveBuild } from './obtain-image.ts';
import { OncePerImage, removeSandbox, type StartedSandbox } from './started-sandbox.ts';
import type { TrialServices } from './trial-services.ts';

export interface SandboxOptions {
  /** The runners whose installs are part of the sandboxes' images. */
  runners?: readonly Runner[];
  /** The host variables that sandboxes may ask for. Default: none. */
  host?: HostEnvironment;
  /** Keeps what install and prepare print. */
  buildLogs?: BuildLogs;
  clock?: Clock;
  /** Called when a step of an environment is built, and when that ends. */
  observeBuild?: ObserveBuild;
}

/** What was started ahead for a trial, and not taken. */
interface StartedAhead {
  /** Its own sandbox, if it is still there. */
  own: Promise<StartedSandbox>[];
  graders: Promise<StartedSandbox>[];
  /** Stops the graders that still start. */
  stop: AbortController;
}

/**
 * The sandboxes of a batch's trials. Starting and removing a container are the two most expensive operations
 * of an engine, so both can happen while other trials run: `start` starts a sandbox before its trial
 * starts, with those that grade it, and `giveBack` does not wait. Disposing removes the sandboxes that were
 * not taken and waits for all removals.
 */
export class Sandboxes implements AsyncDisposable {
  readonly #engine: Engine;
  readonly #maker: SandboxMaker;
  /** What a case's verify changes by itself, keyed by the inputs of that verify run. */
  readonly ownChanges = new OncePerImage<OwnChanges>();
  /** Protected files of workspaces that are too large to read as a whole. */
  readonly protectedFiles = new OncePerImage<Manifest>();
  /** The texts of the workspaces that prepare left. */
  readonly texts = new TextPack();
  readonly #ahead = new Map<TrialSpec, StartedAhead>();
  readonly #removals = new Set<Promise<void>>();

  /** @param extraCertificates the host's extra certificates, for install and prepare */
  constructor(
    engine: Engine,
    extraCertificates: Buffer | undefined,
    {
      runners = [],
      host = noHostEnvironment,
      clock = systemClock,
      buildLogs,
      observeBuild = () => undefined,
    }: SandboxOptions = {},
  ) {
    const memory = { known: new Map(), failures: new Map() };
    const env = host.variables;
    const parts = { engine, extraCertificates, runners, env, buildLogs, observeBuild, ...memory };
    this.#engine = engine;
    this.#maker = new SandboxMaker(parts, host, clock, this.texts);
  }

  /** The name of their engine, if the agent has several. */
  get engineName(): string | undefined {
    return this.#engine.name;
  }

  /**
   * Returns a started sandbox of the trial's prepared image: the one that `start` started, if there is
   * one.
   */
  take(spec: TrialSpec, signal: AbortSignal): Promise<StartedSandbox> {
    return this.#ahead.get(spec)?.own.pop() ?? this.#maker.start(spec, signal);
  }

  /**
   * Returns another sandbox of the same image, without a harness or network access, except to the services of
   * its trial: one that `start` started, if there is one.
   *
   * @param services those of the trial; default: new ones, if the case has some
   */
  takeForGrading(
    spec: TrialSpec,
    signal: AbortSignal,
    services: TrialServices | undefined,
  ): Promise<StartedSandbox> {
    return this.#ahead.get(spec)?.graders.pop() ?? this.#startForGrading(spec, signal, services);
  }

  #startForGrading(spec: TrialSpec, signal: AbortSignal, services: TrialServices | undefined) {
    const sandbox = { ...spec.sandbox, network: 'none' as const };
    return this.#maker.start({ ...spec, sandbox }, signal, { grades: true, services });
  }

  /** Keeps an image of a sandbox in which nothing runs. Resolves with its id. */
  keep(container: Container, request: KeepRequest, signal: AbortSignal): Promise<string> {
    return this.#engine.keep(container, request, signal);
  }

  /**
   * Returns a sandbox of an image that `keep` made for this trial, with the facts of a fresh one, and with
   * new services, if its case has some. Without a harness or network access. Throws `IMAGE_GONE`.
   */
  async takeKept(spec: TrialSpec, keptId: string, signal: AbortSignal): Promise<StartedSandbox> {
    const image = await this.#engine.findImage(keptId, signal);
    if (!image) throw keptIsGone();
    const fresh = await this.takeForGrading(spec, signal, undefined);
    try {
      const kept = await this.#maker.startKept(spec, image.id, fresh.joined, signal);
      // The services stay.
      this.giveBack({ ...fresh, besides: new AsyncDisposableStack() });
      return { ...fresh, ...kept };
    } catch (error) {
      this.giveBack(fresh);
      throw error;
    }
  }

  /**
   * Builds the trial's images if they do not exist yet. Install and prepare take minutes of network and disk,
   * so a caller can wait for them before the trial gets its permit. Fails as `take` would.
   */
  prepare(spec: TrialSpec, signal: AbortSignal, options?: PreparationOptions): Promise<void> {
    return this.#maker.prepare(spec, signal, options);
  }

  /**
   * Starts the sandbox of a trial that will run soon, and those in which it is graded, unless that was done.
   * If the trial has services, its graders wait for them. An error is thrown to who takes the sandbox.
   */
  start(spec: TrialSpec, signal: AbortSignal): void {
    if (this.#ahead.has(spec)) return;
    // First, so that what is wrong with its image is found once.
    const prepared = this.prepare(spec, signal);
    const isAlone = (spec.environment.services ?? []).length === 0;
    const stop = new AbortController();
    const either = AbortSignal.any([signal, stop.signal]);
    const graders = Array.from({ length: isAlone ? gradersOf(spec) : 0 }, () =>
      prepared.then(() => this.#startForGrading(spec, either, undefined)),
    );
    const [grader] = graders;
    const started = prepared.then(() => this.#maker.start(spec, signal, { grades: false }, grader));
    this.#ahead.set(spec, { own: [started], graders, stop });
    // Without this, a failure that nobody awaits yet would end the process.
    for (const each of [started, ...graders]) each.catch(() => undefined);
  }

  /**
   * Releases the sandboxes that were started ahead for a trial and not taken. Call this if it will take no
   * more.
   */
  forget(spec: TrialSpec): void {
    const ahead = this.#ahead.get(spec);
    this.#ahead.delete(spec);
    ahead?.stop.abort();
    for (const each of [ahead?.own ?? [], ahead?.graders ?? []].flat()) this.giveBack(each);
  }

  /** Releases a sandbox, even one that is still starting. It is removed in the background. */
  giveBack(sandbox: StartedSandbox | Promise<StartedSandbox>): void {
    // A container that cannot be removed now is removed with all others of this agent when the engine is
    // closed.
    const removal = Promise.resolve(sandbox)
      .then(removeSandbox)
      .catch(() => undefined);
    this.#removals.add(removal);
    removal.finally(() => this.#removals.delete(removal));
  }

  /** Resolves when the sandboxes that were released are removed, or cannot be removed now. */
  async removalsEnded(): Promise<void> {
    await Promise.all(this.#removals);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const spec of this.#ahead.keys()) this.forget(spec);
    await Promise.all(this.#removals);
    this.texts[Symbol.dispose]();
  }
}

/** In how many fresh sandboxes of its own environment a trial is graded. */
function gradersOf({ verify, verifyPlace, validator, tests, testsIn }: TrialSpec): number {
  const places = [verify !== undefined && verifyPlace.in === 'fresh', validator, tests?.fresh && !testsIn];
  return places.filter(Boolean).length;
}

function keptIsGone(): OffsiteError {
  return infrastructureError('IMAGE_GONE', 'the engine no longer has the image of its sandbox', {
    hint: 'Such images are removed when snapshots exceed their budget: `advanced.snapshots` in offsite.yaml.',
  });
}
