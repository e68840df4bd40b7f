import { type Clock, systemClock } from '../clock.ts';
import type { Manifest } from '../engine/archive/manifest.ts';
import { unmetWishes } from '../engine/capabilities.ts';
import { type Kit, readKit } from '../engine/changes/kit.ts';
import type { ContainerSpec } from '../engine/container/container-spec.ts';
import type { Container } from '../engine/container.ts';
import type { Engine, KeepRequest } from '../engine/engine.ts';
import type { Runner } from '../harness/runner.ts';
import type { BuildLogs } from '../ledger/build-logs.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { EnvironmentStep, UsedImage } from '../record/trial-record.ts';
import type { ObserveBuild } from './build-event.ts';
import { containerSpec, engineNetwork } from './container-spec.ts';
import { TrialFailure } from './failure.ts';
import { keepTexts } from './file-texts.ts';
import { requireHealth } from './healthcheck.ts';
import {
  type HostEnvironment,
  noHostEnvironment,
  passedEnvironment,
  refuseKeys,
} from './host-environment.ts';
import type { ImageParts, PreparationOptions } from './image-parts.ts';
import { type ModelPort, needsPort, openPort, relayImage, relayImageOf } from './model-port.ts';
import { OncePerImage } from './once-per-image.ts';
import { CaseServices } from './services/case-services.ts';
import type { ServiceImage } from './services/service-image.ts';
import type { TrialServices } from './services/trial-services.ts';
import { preparedImage } from './snapshot.ts';
import type { TrialSpec } from './spec.ts';
import type { StartImage } from './start-image.ts';
import { testsSpec } from './tests-spec.ts';
import { TextPack } from './text-pack.ts';
import type { OwnChanges } from './verify-changes.ts';
import { readWorkspace, smallWorkspace, type WorkspaceState, workspaceBytes } from './workspace.ts';

export interface StartedSandbox {
  container: Container;
  /**
   * The image that it was made from. If prepare leaves processes running, prepare ran in the sandbox itself.
   */
  imageId: string;
  /** The user of its commands. Undefined for root. */
  user: string | undefined;
  /** What its image was made of first. */
  images: UsedImage[];
  /** Install and prepare, in order. */
  environment: EnvironmentStep[];
  /** Total bytes of the files that prepare left in the workspace. */
  preparedBytes: number;
  /** The workspace's state before the harness works in it. */
  before: WorkspaceState;
  /**
   * Lists what changed in the container. Undefined if the container's layer can be read directly, or if file
   * times do not show changes.
   */
  kit: Kit | undefined;
  /** The sandbox's way to models and named hosts. Undefined if it may reach none. */
  port: ModelPort | undefined;
  /** Limits that the engine could not apply, and other protections that are missing, one line each. */
  lacks: string[];
  /** What a validator gets in place of variables that name folders in the workspace. */
  closedEnv: Record<string, string>;
  /** Whether an image of it has all that is in it: no processes of prepare, and no volumes. */
  isCommittable: boolean;
  /** The containers beside it. Undefined if the case has none. */
  services: TrialServices | undefined;
  /** What is removed with it. */
  besides: AsyncDisposable;
}

/** What decides about a sandbox besides its trial. */
interface GivenParts {
  /** Whether no harness runs in it. */
  grades: boolean;
  /** Services that run already. Undefined for new ones, if the case has some. */
  services: TrialServices | undefined;
}

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

/**
 * The sandboxes of a batch's trials. Starting and removing a container are the two most expensive operations
 * of an engine, so both can happen while other trials run: `startAhead` starts a sandbox before its trial
 * starts, and `giveBack` does not wait. Disposing removes the sandboxes that were not taken and waits for all
 * removals.
 */
export class Sandboxes implements AsyncDisposable {
  readonly #parts: ImageParts;
  readonly #host: HostEnvironment;
  readonly #clock: Clock;
  readonly #services: CaseServices;
  /** What a case's verify changes by itself, keyed by the inputs of that verify run. */
  readonly ownChanges = new OncePerImage<OwnChanges>();
  /** Protected files of workspaces that are too large to read as a whole. */
  readonly protectedFiles = new OncePerImage<Manifest>();
  /** The texts of the workspaces that prepare left. */
  readonly texts = new TextPack();
  readonly #preparedBytes = new OncePerImage<number>();
  readonly #baselines = new OncePerImage<WorkspaceState>();
  /** Keyed by the first image: a kit works in all images that are made from it. */
  readonly #kits = new OncePerImage<Kit | undefined>();
  readonly #ahead = new Map<TrialSpec, Promise<StartedSandbox>>();
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
    const learned = { known: new Map(), starts: new Map(), failures: new Map(), images: new Map() };
    const env = host.variables;
    this.#parts = { engine, extraCertificates, runners, env, buildLogs, observeBuild, ...learned };
    this.#host = host;
    this.#clock = clock;
    this.#services = new CaseServices(this.#parts, clock);
  }

  /**
   * Returns a started sandbox of the trial's prepared image: the one that `startAhead` started, if there is
   * one.
   */
  take(spec: TrialSpec, signal: AbortSignal): Promise<StartedSandbox> {
    const ahead = this.#ahead.get(spec);
    this.#ahead.delete(spec);
    return ahead ?? this.#start(spec, signal);
  }

  /**
   * Returns another sandbox of the same image, without a harness or network access, except to the services of
   * its trial.
   *
   * @param services those of the trial; default: new ones, if the case has some
   */
  takeForGrading(
    spec: TrialSpec,
    signal: AbortSignal,
    services: TrialServices | undefined,
  ): Promise<StartedSandbox> {
    const sandbox = { ...spec.sandbox, network: 'none' as const };
    return this.#start({ ...spec, sandbox }, signal, { grades: true, services });
  }

  /** Keeps an image of a sandbox in which nothing runs. Resolves with its id. */
  keep(container: Container, request: KeepRequest, signal: AbortSignal): Promise<string> {
    return this.#parts.engine.keep(container, request, signal);
  }

  /**
   * Returns a sandbox of an image that `keep` made for this trial, with the facts of a fresh one. Without a
   * harness or network access. Throws `IMAGE_GONE`.
   */
  async takeKept(spec: TrialSpec, keptId: string, signal: AbortSignal): Promise<StartedSandbox> {
    const { engine } = this.#parts;
    const image = await engine.findImage(keptId, signal);
    if (!image) throw keptIsGone();
    const fresh = await this.takeForGrading(spec, signal, undefined);
    try {
      const passed = this.#environment(spec);
      const { start } = await preparedImage(this.#parts, spec, passed, signal);
      const env = { ...passed, ...spec.environment.env };
      const made = containerSpec(spec.sandbox, start, { network: 'none', labels: labelsOf(spec) }, env);
      const make = (network: ContainerSpec['network']) =>
        engine.createContainer({ ...made, network, imageId: image.id }, signal);
      const graded = { ...spec, sandbox: { ...spec.sandbox, network: 'none' as const } };
      const port = await this.#openPort(graded, 'none', signal);
      if (port) {
        try {
          return { ...fresh, port, container: await port.relay.startSandbox(make, signal) };
        } catch (error) {
          await port[Symbol.asyncDispose]();
          throw error;
        }
      }
      const container = await make('none');
      try {
        await container.start(signal);
      } catch (error) {
        await container.remove();
        throw error;
      }
      return { ...fresh, port, container };
    } finally {
      this.giveBack(fresh);
    }
  }

  /**
   * Builds the trial's images if they do not exist yet. Install and prepare take minutes of network and disk,
   * so a caller can wait for them before the trial gets its permit. Fails as `take` would.
   */
  async prepare(spec: TrialSpec, signal: AbortSignal, options?: PreparationOptions): Promise<void> {
    for (const each of new Set([spec, testsSpec(spec)])) {
      const env = this.#environment(each);
      await this.#services.images(each, env, signal, options);
      await preparedImage(this.#parts, each, env, signal, options);
    }
  }

  /** Starts the sandbox of a trial that will run soon. An error is thrown to the caller of `take`. */
  startAhead(spec: TrialSpec, signal: AbortSignal): void {
    const starting = this.#start(spec, signal);
    // Without this, a failure that nobody awaits yet would end the process.
    starting.catch(() => undefined);
    this.#ahead.set(spec, starting);
  }

  /**
   * Releases the sandbox that was started ahead for a trial, if there is one. Call this if the trial will not
   * run.
   */
  forget(spec: TrialSpec): void {
    const ahead = this.#ahead.get(spec);
    this.#ahead.delete(spec);
    if (ahead) this.giveBack(ahead);
  }

  /** Releases a sandbox, even one that is still starting. It is removed in the background. */
  giveBack(sandbox: StartedSandbox | Promise<StartedSandbox>): void {
    // A container that cannot be removed now is removed with all others of this agent when the engine is
    // closed.
    const removal = removed(sandbox).catch(() => undefined);
    this.#removals.add(removal);
    removal.finally(() => this.#removals.delete(removal));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const untaken = [...this.#ahead.values()];
    this.#ahead.clear();
    for (const sandbox of untaken) this.giveBack(sandbox);
    await Promise.all(this.#removals);
    this.texts[Symbol.dispose]();
  }

  /**
   * The variables that the host passes in. Every new sandbox asks for them here, so a trial that would bring
   * a key into its sandbox gets none.
   */
  #environment(spec: TrialSpec): Record<string, string> {
    refuseKeys(spec, this.#host);
    return passedEnvironment(spec.sandbox, this.#host);
  }

  async #start(
    spec: TrialSpec,
    signal: AbortSignal,
    given: GivenParts = { grades: false, services: undefined },
  ): Promise<StartedSandbox> {
    const env = this.#environment(spec);
    const { preparedHere, start, ...made } = await this.#make(spec, env, signal, given).catch((error) => {
      const isGone = error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND';
      if (!isGone || signal.aborted) throw error;
      // Somebody removed an image after this batch last checked.
      this.#parts.known.clear();
      this.#parts.starts.clear();
      this.#services.forget();
      return this.#make(spec, env, signal, given);
    });
    const { imageId, container, port, besides } = made;
    try {
      const read = () => readWorkspace(container, signal, keepTexts(this.texts));
      const before = preparedHere ? await read() : await this.#baselines.of(imageId, read);
      const count = () => workspaceBytes(container, signal);
      const preparedBytes =
        before === 'large' ? await this.#preparedBytes.of(imageId, count) : smallWorkspace;
      const lacks = [...unmetWishes(spec.sandbox, this.#parts.engine.capabilities), ...openTo(start)];
      const kit = await this.#kit(spec, start.id, container, signal);
      const { user, closedEnv } = start;
      const isCommittable = !preparedHere && !start.hasVolumes;
      return { ...made, user, closedEnv, isCommittable, lacks, before, preparedBytes, kit };
    } catch (error) {
      await Promise.all([port?.[Symbol.asyncDispose](), container.remove()]);
      await besides[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Creates and starts a trial's container, with its model port, and with its harness unless it grades. */
  async #make(spec: TrialSpec, passed: Record<string, string>, signal: AbortSignal, given: GivenParts) {
    const serviceImages = await this.#services.images(spec, passed, signal);
    const prepared = await preparedImage(this.#parts, spec, passed, signal);
    const { imageId, start, mount, prepare } = prepared;
    const images = [...prepared.images, ...serviceImages.images];
    const mounts = mount && (!given.grades || prepare) ? [mount] : [];
    const steps = [...serviceImages.steps, ...prepared.steps];
    const env = { ...passed, ...spec.environment.env };
    const own = engineNetwork(spec.sandbox);
    const make = (network: ContainerSpec['network'], hosts?: ContainerSpec['hosts']) => {
      const made = containerSpec(spec.sandbox, start, { network, labels: labelsOf(spec) }, env);
      return this.#parts.engine.createContainer({ ...made, imageId, mounts, hosts }, signal);
    };
    // In this order: the sandbox ends before its network.
    await using around = new AsyncDisposableStack();
    await using made = new AsyncDisposableStack();
    let container: Container;
    let port: ModelPort | undefined;
    let services: TrialServices | undefined;
    if (serviceImages.services.length > 0) {
      if (prepare && prepared.preparesWithScript) throw preparesBesideServices(spec);
      services =
        given.services ?? around.use(await this.#startServices(serviceImages.services, spec, signal));
      const access = around.use(await services.join(given.services ? 'grading' : 'agent', own, signal));
      container = made.use(await make(access.network, access.hosts));
      await container.start(signal);
      if (prepare) steps.push(...(await prepare(container)));
      port = made.use(await this.#openPort(spec, access.network, signal));
      await this.#services.ready(services, spec);
    } else if (prepare) {
      container = made.use(await make('open'));
      await container.start(signal);
      steps.push(...(await prepare(container)));
      if (own === 'none') await container.disconnect(signal);
      port = made.use(await this.#openPort(spec, { sharedWith: container.id }, signal));
    } else {
      port = made.use(await this.#openPort(spec, own, signal));
      container = made.use(port ? await port.relay.startSandbox(make, signal) : await make(own));
      if (!port) await container.start(signal);
    }
    await requireHealth(container, spec, this.#clock, signal);
    made.move();
    const besides = around.move();
    const preparedHere = prepare !== undefined;
    const started = { imageId, start, images, container, port, environment: steps };
    return { ...started, preparedHere, services, besides };
  }

  async #startServices(images: readonly ServiceImage[], spec: TrialSpec, signal: AbortSignal) {
    const more = { baseImageId: await this.#relayImage(signal), labels: labelsOf(spec) };
    return this.#services.start(images, spec, more, signal);
  }

  async #kit(
    spec: TrialSpec,
    startId: string,
    container: Container,
    signal: AbortSignal,
  ): Promise<Kit | undefined> {
    if (spec.verify === undefined || !this.#parts.engine.capabilities.keepsImageTimes) return undefined;
    return this.#kits.of(startId, async () => {
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

/** The agent's files are in the sandbox that verify runs in, so these variables let it run or load them. */
function openTo({ openVariables }: StartImage): string[] {
  if (openVariables.length === 0) return [];
  const names = openVariables.join(', ');
  return [
    `programs that the agent cannot replace: ${names} of the environment names a folder in the workspace`,
  ];
}

function keptIsGone(): OffsiteError {
  return new OffsiteError('the engine no longer has the image of its sandbox', {
    code: 'IMAGE_GONE',
    kind: 'infrastructure',
    hint: 'Such images are removed when snapshots exceed their budget: `snapshots` in offsite.yaml.',
  });
}

async function removed(sandbox: StartedSandbox | Promise<StartedSandbox>): Promise<void> {
  const { container, port, besides } = await sandbox;
  await Promise.all([port?.[Symbol.asyncDispose](), container.remove()]);
  await besides[Symbol.asyncDispose]();
}

function preparesBesideServices({ environment, caseName }: TrialSpec): TrialFailure {
  const [first] = environment.services ?? [];
  const why = 'leaves processes running, or its image has volumes, so it would run in each sandbox';
  const message = `${first?.place}: prepare of ${caseName} ${why}; beside services that is not possible`;
  return new TrialFailure({ kind: 'task', phase: 'prepare', message });
}

function labelsOf({ batchId, runId, ordinal }: TrialSpec): Record<string, string> {
  return { 'offsite.batch': batchId, 'offsite.run': runId, 'offsite.ordinal': String(ordinal) };
}
