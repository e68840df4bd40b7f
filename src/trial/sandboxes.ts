import { type Clock, systemClock } from '../clock.ts';
import type { Manifest } from '../engine/archive/manifest.ts';
import { unmetWishes } from '../engine/capabilities.ts';
import { type Kit, readKit } from '../engine/changes/kit.ts';
import type { ContainerSpec } from '../engine/container/container-spec.ts';
import type { Container } from '../engine/container.ts';
import type { Engine } from '../engine/engine.ts';
import type { Runner } from '../harness/runner.ts';
import { OffsiteError } from '../offsite-error.ts';
import { containerSpec, engineNetwork } from './container-spec.ts';
import {
  type HostEnvironment,
  noHostEnvironment,
  passedEnvironment,
  refuseKeys,
} from './host-environment.ts';
import { type ModelPort, needsPort, openPort, relayImage, relayImageOf } from './model-port.ts';
import { OncePerImage } from './once-per-image.ts';
import { type ImageParts, type PreparationOptions, preparedImage } from './snapshot.ts';
import type { TrialSpec } from './spec.ts';
import type { OwnChanges } from './verify-changes.ts';
import { readWorkspace, smallWorkspace, type WorkspaceState, workspaceBytes } from './workspace.ts';

export interface StartedSandbox {
  container: Container;
  /** What it was made from. Where prepare leaves processes running, that ran in the sandbox itself. */
  imageId: string;
  /** Bytes of the files that prepare left in its workspace. */
  preparedBytes: number;
  /** Its workspace before the harness works there. */
  before: WorkspaceState;
  /**
   * Lists what is changed in it; undefined where its layer can be read, and where changes cannot be told by
   * times.
   */
  kit: Kit | undefined;
  /** Its way to models and named hosts; undefined where it reaches none. */
  port: ModelPort | undefined;
  /** What the engine did not give it, a line each. */
  lacks: string[];
}

export interface SandboxOptions {
  /** Whose installs are part of the sandboxes' images. */
  runners?: readonly Runner[];
  /** What of the host's environment sandboxes may ask for; nothing when left out. */
  host?: HostEnvironment;
  clock?: Clock;
}

/**
 * The sandboxes of a batch's trials. Starting a container and removing it are the two dearest things an
 * engine does, so both can happen while other trials run: `startAhead` begins before the trial has its turn,
 * `giveBack` does not wait. Disposing removes what was not taken and waits for the removals.
 */
export class Sandboxes implements AsyncDisposable {
  readonly #parts: ImageParts;
  readonly #host: HostEnvironment;
  readonly #clock: Clock;
  /** What a case's verify changes by itself, by what it is run with. */
  readonly ownChanges = new OncePerImage<OwnChanges>();
  /** Protected files of workspaces that are too large to be read as a whole. */
  readonly protectedFiles = new OncePerImage<Manifest>();
  readonly #preparedBytes = new OncePerImage<number>();
  readonly #baselines = new OncePerImage<WorkspaceState>();
  /** By the configured image that others are made from: a kit works in all of them. */
  readonly #kits = new OncePerImage<Kit | undefined>();
  readonly #ahead = new Map<TrialSpec, Promise<StartedSandbox>>();
  readonly #removals = new Set<Promise<void>>();

  /** @param extraCertificates the host's, for install and prepare */
  constructor(
    engine: Engine,
    extraCertificates: Buffer | undefined,
    { runners = [], host = noHostEnvironment, clock = systemClock }: SandboxOptions = {},
  ) {
    this.#parts = { engine, extraCertificates, runners, known: new Map(), failures: new Map() };
    this.#host = host;
    this.#clock = clock;
  }

  /** A started sandbox from the trial's prepared image: the one begun ahead, if there is one. */
  take(spec: TrialSpec, signal: AbortSignal): Promise<StartedSandbox> {
    const ahead = this.#ahead.get(spec);
    this.#ahead.delete(spec);
    return ahead ?? this.#start(spec, signal);
  }

  /** One more sandbox from the same image, in which no harness works: it reaches nothing. */
  takeForGrading(spec: TrialSpec, signal: AbortSignal): Promise<StartedSandbox> {
    return this.#start({ ...spec, sandbox: { ...spec.sandbox, network: 'none' } }, signal);
  }

  /**
   * Makes what the trial's sandbox starts from, where it is not there yet. Installing and preparing take
   * minutes of network and disk, so that they can be waited for before a trial takes its place. Fails as
   * `take` would.
   */
  async prepare(spec: TrialSpec, signal: AbortSignal, options?: PreparationOptions): Promise<void> {
    await preparedImage(this.#parts, spec, this.#environment(spec), signal, options);
  }

  /** Begins the sandbox of a trial whose turn comes soon. What goes wrong is thrown to who takes it. */
  startAhead(spec: TrialSpec, signal: AbortSignal): void {
    const starting = this.#start(spec, signal);
    // Taken or not, the failure of one that nobody awaits yet must not end the process.
    starting.catch(() => undefined);
    this.#ahead.set(spec, starting);
  }

  /** Takes the sandbox that was begun ahead of a trial out of use, if there is one: the trial is not run. */
  forget(spec: TrialSpec): void {
    const ahead = this.#ahead.get(spec);
    this.#ahead.delete(spec);
    if (ahead) this.giveBack(ahead);
  }

  /** Takes a sandbox out of use, be it still starting; it is removed meanwhile. */
  giveBack(sandbox: StartedSandbox | Promise<StartedSandbox>): void {
    // What cannot be removed now is removed with all else of this agent when the engine is left.
    const removal = removed(sandbox).catch(() => undefined);
    this.#removals.add(removal);
    removal.finally(() => this.#removals.delete(removal));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const untaken = [...this.#ahead.values()];
    this.#ahead.clear();
    for (const sandbox of untaken) this.giveBack(sandbox);
    await Promise.all(this.#removals);
  }

  /**
   * What the host passes in. No sandbox is made without asking for it, and none of a trial that would bring a
   * key along.
   */
  #environment(spec: TrialSpec): Record<string, string> {
    refuseKeys(spec, this.#host);
    return passedEnvironment(spec.sandbox, this.#host);
  }

  async #start(spec: TrialSpec, signal: AbortSignal): Promise<StartedSandbox> {
    const env = this.#environment(spec);
    const { imageId, container, port, preparedHere } = await this.#make(spec, env, signal).catch((error) => {
      const isGone = error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND';
      if (!isGone || signal.aborted) throw error;
      // Somebody removed an image since this batch last looked.
      this.#parts.known.clear();
      return this.#make(spec, env, signal);
    });
    try {
      const read = () => readWorkspace(container, signal);
      const before = preparedHere ? await read() : await this.#baselines.of(imageId, read);
      const count = () => workspaceBytes(container, signal);
      const preparedBytes =
        before === 'large' ? await this.#preparedBytes.of(imageId, count) : smallWorkspace;
      const lacks = unmetWishes(spec.sandbox, this.#parts.engine.capabilities);
      const kit = await this.#kit(spec, container, signal);
      return { container, imageId, port, lacks, before, preparedBytes, kit };
    } catch (error) {
      await Promise.all([port?.[Symbol.asyncDispose](), container.remove()]);
      throw error;
    }
  }

  /** Makes a trial's container and starts it, with its way out. */
  async #make(spec: TrialSpec, env: Record<string, string>, signal: AbortSignal) {
    const { imageId, prepare } = await preparedImage(this.#parts, spec, env, signal);
    const own = engineNetwork(spec.sandbox);
    const make = (network: ContainerSpec['network']) => {
      const made = containerSpec(spec.sandbox, { network, labels: labelsOf(spec) }, env);
      return this.#parts.engine.createContainer({ ...made, imageId }, signal);
    };
    await using made = new AsyncDisposableStack();
    let container: Container;
    let port: ModelPort | undefined;
    if (prepare) {
      container = made.use(await make('open'));
      await container.start(signal);
      await prepare(container);
      if (own === 'none') await container.disconnect(signal);
      port = await this.#openPort(spec, { sharedWith: container.id }, signal);
    } else {
      port = made.use(await this.#openPort(spec, own, signal));
      container = port ? await port.relay.startSandbox(make, signal) : made.use(await make(own));
      if (!port) await container.start(signal);
    }
    made.move();
    return { imageId, container, port, preparedHere: prepare !== undefined };
  }

  async #kit(spec: TrialSpec, container: Container, signal: AbortSignal): Promise<Kit | undefined> {
    if (spec.verify === undefined || !this.#parts.engine.capabilities.keepsImageTimes) return undefined;
    return this.#kits.of(spec.sandbox.image, async () => {
      const isReadable = (await container.layerPaths({ except: [], signal })) !== undefined;
      return isReadable ? undefined : readKit(container, signal);
    });
  }

  async #openPort(
    spec: TrialSpec,
    network: ContainerSpec['network'],
    signal: AbortSignal,
  ): Promise<ModelPort | undefined> {
    if (!needsPort(spec)) return undefined;
    const image = await this.#relayImage(signal);
    const request = { network, image, labels: labelsOf(spec), clock: this.#clock };
    return openPort(this.#parts.engine, request, signal);
  }

  async #relayImage(signal: AbortSignal): Promise<string> {
    const { known, engine } = this.#parts;
    const id = known.get(relayImage) ?? (await relayImageOf(engine, signal));
    known.set(relayImage, id);
    return id;
  }
}

async function removed(sandbox: StartedSandbox | Promise<StartedSandbox>): Promise<void> {
  const { container, port } = await sandbox;
  await Promise.all([port?.[Symbol.asyncDispose](), container.remove()]);
}

function labelsOf({ batchId, runId, ordinal }: TrialSpec): Record<string, string> {
  return { 'offsite.batch': batchId, 'offsite.run': runId, 'offsite.ordinal': String(ordinal) };
}
