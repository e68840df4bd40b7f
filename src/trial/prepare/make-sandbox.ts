import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { unmetWishes } from '../../engine/capabilities.ts';
import { type Kit, readKit } from '../../engine/changes/kit.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Container } from '../../engine/container.ts';
import type { Mount } from '../../engine/port/containers.ts';
import type { EnvironmentStep } from '../../record/environment.ts';
import { type PlacedFile, startUpOf } from '../../suite/environment.ts';
import { type TrialFailure, taskFailure } from '../blame.ts';
import {
  keepTexts,
  readWorkspace,
  smallWorkspace,
  type TextPack,
  type WorkspaceState,
  workspaceBytes,
} from '../collect/read-workspace.ts';
import { type TrialSpec, testsSpec } from '../spec.ts';
import {
  containerSpec,
  engineNetwork,
  type HostEnvironment,
  passedEnvironment,
  refuseKeys,
} from './environment.ts';
import { nodeOf } from './harness-volume.ts';
import {
  type ImageParts,
  type ImageWork,
  noteFailure,
  onceForBatch,
  type PreparationOptions,
} from './image-parts.ts';
import { type ModelPort, needsPort, openPort, relayImage, relayImageOf } from './model-port.ts';
import { preparedImage } from './prepared-image.ts';
import { type ServiceImages, serviceImages } from './service-image.ts';
import type { StartImage } from './start-image.ts';
import {
  type JoinedNetwork,
  OncePerImage,
  type PreparedWorkspace,
  removeSandbox,
  requireHealth,
  type StartedSandbox,
  startProgram,
} from './started-sandbox.ts';
import { startServices, type TrialServices } from './trial-services.ts';
import {
  isNothing,
  nothingVisible,
  refuseVisible,
  searchKey,
  searchLacks,
  searchOf,
  searchVisible,
  type Visible,
} from './visible-answers.ts';

/** What decides about a sandbox besides its trial. */
interface GivenParts {
  /** Whether no harness runs in it. */
  grades: boolean;
  /** Services that run already. Undefined for new ones, if the case has some. */
  services?: TrialServices | undefined;
}

/** A container to create. */
interface OpenRequest {
  start: StartImage;
  imageId: string;
  env: Readonly<Record<string, string>>;
  mounts?: Mount[];
  diskGrows: boolean;
  /** The network that it has if it joins no other one. */
  own: 'none' | 'open';
  joined: JoinedNetwork | undefined;
  /** Prepares it, with the network. */
  prepare?: ((container: Container) => Promise<EnvironmentStep[]>) | undefined;
}

/** What is known of services that were healthy once. */
const worked = 'worked';

/**
 * Makes the images of sandboxes, starts their containers, and reads what is in them. What is the same in all
 * sandboxes of an image is read once.
 */
export class SandboxMaker {
  readonly #parts: ImageParts;
  readonly #host: HostEnvironment;
  readonly #clock: Clock;
  readonly #texts: TextPack;
  readonly #preparedBytes = new OncePerImage<number>();
  readonly #baselines = new OncePerImage<WorkspaceState>();
  readonly #visible = new OncePerImage<Visible>();
  /** Whether the engine's disk can be seen, with one key. */
  readonly #seesDisk = new OncePerImage<boolean>();
  /** Keyed by the first image: a kit works in all images that are made from it. */
  readonly #kits = new OncePerImage<Kit | undefined>();

  /** @param texts where the texts of prepared workspaces are kept */
  constructor(parts: ImageParts, host: HostEnvironment, clock: Clock, texts: TextPack) {
    this.#parts = parts;
    this.#host = host;
    this.#clock = clock;
    this.#texts = texts;
  }

  /** Builds the images of a trial and of its tests if they do not exist yet. */
  async prepare(spec: TrialSpec, signal: AbortSignal, options?: PreparationOptions): Promise<void> {
    for (const each of new Set([spec, testsSpec(spec)])) {
      const work = this.#work(each, signal, options);
      await this.#serviceImages(work, each);
      await preparedImage(work, each);
    }
  }

  /**
   * Returns a started sandbox of the trial's prepared image.
   *
   * @param grader another one, whose workspace is read in place of this one's: the harness need not wait
   */
  async start(
    spec: TrialSpec,
    signal: AbortSignal,
    given: GivenParts = { grades: false },
    grader?: Promise<StartedSandbox>,
  ): Promise<StartedSandbox> {
    const { preparedHere, start, ...made } = await this.#make(spec, signal, given).catch((error) => {
      const isGone = error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND';
      if (!isGone || signal.aborted) throw error;
      // Somebody removed an image after this batch last checked.
      this.#forgetImages();
      return this.#make(spec, signal, given);
    });
    const { container } = made;
    try {
      // What runs there may have written to the workspace.
      const isItsOwn = preparedHere || made.startUp !== undefined;
      const isDiskSeen = await this.#seesDisk.of('', signal, () => container.seesDisk(signal));
      const elsewhere = isItsOwn ? undefined : grader?.then((other) => other.prepared());
      const reading = elsewhere ?? this.#prepared(made, isItsOwn, signal);
      // Whoever asks for it gets the error.
      reading.catch(() => undefined);
      const [unsearched] = await Promise.all([
        given.grades ? [] : this.#refuseVisible(spec, made, { isItsOwn, user: start.user }, signal),
        elsewhere ? undefined : reading,
      ]);
      const lacks = [
        ...unmetWishes(spec.sandbox, this.#parts.engine.capabilities),
        ...openTo(start),
        ...unsearched,
        ...(isDiskSeen ? [] : [uncountedDisk(container)]),
      ];
      const kit = await this.#kit(spec, start.id, container, signal);
      const { user, closedEnv } = start;
      const isCommittable = !preparedHere && !start.hasVolumes;
      return { ...made, user, closedEnv, isCommittable, lacks, kit, prepared: () => reading };
    } catch (error) {
      await removeSandbox(made);
      throw error;
    }
  }

  /**
   * Starts a container of an image that was kept of one of the trial's sandboxes. It reaches nothing but the
   * hosts of its tests, and services.
   *
   * @param joined the place of another sandbox on the network of its services
   */
  async startKept(
    { sandbox, ...trial }: TrialSpec,
    imageId: string,
    joined: JoinedNetwork | undefined,
    signal: AbortSignal,
  ): Promise<{ container: Container; port: ModelPort | undefined }> {
    const spec = { ...trial, sandbox: { ...sandbox, network: 'none' as const } };
    const work = this.#work(spec, signal);
    const { start } = await preparedImage(work, spec);
    const env = { ...work.passed, ...spec.environment.env };
    const { container, port } = await this.#open(
      spec,
      { start, imageId, env, diskGrows: true, own: 'none', joined },
      signal,
    );
    return { container, port };
  }

  /** Creates and starts a trial's container, with its model port, and with its harness unless it grades. */
  async #make(spec: TrialSpec, signal: AbortSignal, { grades, services: given }: GivenParts) {
    const work = this.#work(spec, signal);
    const ofServices = await this.#serviceImages(work, spec);
    const prepared = await preparedImage(work, spec);
    const { imageId, start, mount, node, prepare } = prepared;
    if (start.used.name === relayImage) this.#parts.known.set(relayImage, start.id);
    const hasHarness = !grades || prepare !== undefined;
    const mounts = [...(mount && hasHarness ? [mount] : []), ...(node && grades ? [node] : [])];
    const env = { ...work.passed, ...spec.environment.env };
    const own = engineNetwork(spec.sandbox);
    // In this order, because disposal is in reverse: the sandbox ends before its network.
    await using around = new AsyncDisposableStack();
    await using made = new AsyncDisposableStack();
    let services: TrialServices | undefined;
    let joined: JoinedNetwork | undefined;
    if (ofServices.services.length > 0) {
      if (prepare && prepared.preparesWithScript) throw preparesBesideServices(spec);
      services = given ?? around.use(await this.#startServices(ofServices, spec, signal));
      const access = around.use(await services.join(given ? 'grading' : 'agent', own, signal));
      joined = { network: access.network, hosts: access.hosts };
    }
    const request = { start, imageId, env, mounts, diskGrows: grades, own, joined, prepare };
    const { container, port, preparing } = await this.#open(spec, request, signal);
    made.use(port);
    made.use(container);
    if (services) await this.#ready(services, spec);
    for (const path of spec.environment.volumes ?? [])
      if ((await container.kindOf(path, signal)) === 'nothing')
        await container.put([{ path, folder: true, mode: 0o777 }], '/', signal);
    const startUp = startUpOf(spec.environment.startUp, start.program);
    await startProgram(container, startUp, spec, signal);
    await requireHealth(container, spec, this.#clock, signal);
    made.move();
    return {
      imageId,
      start,
      images: [...prepared.images, ...ofServices.images],
      container,
      port,
      environment: [...ofServices.steps, ...prepared.steps, ...preparing],
      services,
      joined,
      besides: around.move(),
      startUp,
      validatorNode: node && nodeOf(node),
      preparedHere: prepare !== undefined,
    };
  }

  /** Creates and starts a container, with its model port. */
  async #open(
    spec: TrialSpec,
    { start, imageId, env, mounts, diskGrows, own, joined, prepare }: OpenRequest,
    signal: AbortSignal,
  ) {
    const labels = labelsOf(spec);
    const create = (network: ContainerSpec['network'], named?: ContainerSpec['hosts']) => {
      const hosts = { ...spec.environment.hosts, ...named };
      const made = containerSpec(spec.sandbox, start, { network, labels }, env);
      return this.#parts.engine.createContainer({ ...made, imageId, mounts, hosts, diskGrows }, signal);
    };
    await using made = new AsyncDisposableStack();
    let container: Container;
    let port: ModelPort | undefined;
    let preparing: EnvironmentStep[] = [];
    if (joined || prepare) {
      container = made.use(await create(joined?.network ?? 'open', joined?.hosts));
      await container.start(signal);
      if (prepare) preparing = await prepare(container);
      if (!joined && own === 'none') await container.disconnect(signal);
      port = made.use(await this.#port(spec, joined?.network ?? { sharedWith: container.id }, signal));
    } else {
      port = made.use(await this.#port(spec, own, signal));
      container = made.use(port ? await port.relay.startSandbox(create, signal) : await create(own));
      if (!port) await container.start(signal);
    }
    made.move();
    return { container, port, preparing };
  }

  /**
   * What builds a trial's images, with the variables that the host passes in. Every new sandbox gets them
   * from here, so this refuses a trial that would bring a key into its sandbox.
   */
  #work(spec: TrialSpec, signal: AbortSignal, options?: PreparationOptions): ImageWork {
    refuseKeys(spec, this.#host);
    return { ...this.#parts, ...options, passed: passedEnvironment(spec.sandbox, this.#host), signal };
  }

  /** The images of a case's services. Those that cannot be used are found once for each case. */
  #serviceImages(work: ImageWork, spec: TrialSpec): Promise<ServiceImages> {
    return onceForBatch(work, servicesOf(spec, 'images'), () => serviceImages(work, spec));
  }

  /** Begins to start the services of a trial. */
  async #startServices({ services: images }: ServiceImages, spec: TrialSpec, signal: AbortSignal) {
    const baseImageId = await this.#relayImage(signal);
    const failure = this.#parts.failures.get(servicesOf(spec, 'health').key);
    if (failure) throw failure;
    const { engine } = this.#parts;
    const sandboxName = spec.environment.nameForServices;
    const request = { engine, clock: this.#clock, images, sandboxName, baseImageId, labels: labelsOf(spec) };
    return startServices(request, signal);
  }

  /** Forgets all but which services have worked. */
  #forgetImages(): void {
    for (const [key, value] of this.#parts.known) if (value !== worked) this.#parts.known.delete(key);
  }

  /**
   * Waits for a trial's services. If they fail the first time, they are not started again for the next trial
   * of their case. Services that worked once may fail for a reason that does not last.
   */
  async #ready(services: TrialServices, spec: TrialSpec): Promise<void> {
    const attempted = servicesOf(spec, 'health');
    try {
      await services.ready;
      this.#parts.known.set(attempted.key, worked);
    } catch (error) {
      if (!this.#parts.known.has(attempted.key)) noteFailure(this.#parts, attempted, error);
      throw error;
    }
  }

  async #port(
    spec: TrialSpec,
    network: ContainerSpec['network'],
    signal: AbortSignal,
  ): Promise<ModelPort | undefined> {
    if (!needsPort(spec, this.#parts.runners)) return undefined;
    const image = await this.#relayImage(signal);
    const request = { network, image, labels: labelsOf(spec), clock: this.#clock };
    return openPort(this.#parts.engine, request, signal);
  }

  #relayImage(signal: AbortSignal): Promise<string> {
    return onceForBatch(this.#parts, { key: relayImage, what: `image ${relayImage}` }, () =>
      relayImageOf(this.#parts.engine, signal),
    );
  }

  async #prepared(
    { imageId, container }: Pick<StartedSandbox, 'imageId' | 'container'>,
    isItsOwn: boolean,
    signal: AbortSignal,
  ): Promise<PreparedWorkspace> {
    const read = () => readWorkspace(container, signal, keepTexts(this.#texts));
    const state = isItsOwn ? await read() : await this.#baselines.of(imageId, signal, read);
    const count = () => workspaceBytes(container, signal);
    const bytes = state === 'large' ? await this.#preparedBytes.of(imageId, signal, count) : smallWorkspace;
    return { state, bytes };
  }

  /**
   * Throws a TrialFailure if an agent could find what grades or solves its case. Each image is searched once,
   * and never again in this ledger if nothing was found: its id is the hash of its content. Resolves with
   * what could not be searched or decided, and why.
   */
  async #refuseVisible(
    spec: TrialSpec,
    { imageId, container }: Pick<StartedSandbox, 'imageId' | 'container'>,
    { isItsOwn, user }: { isItsOwn: boolean; user: string | undefined },
    signal: AbortSignal,
  ): Promise<string[]> {
    const search = searchOf(spec);
    if (!search) return [];
    const key = searchKey(search, [imageId, container.workingDir, user ?? '']);
    const { buildLogs, engine } = this.#parts;
    const searches = isItsOwn ? undefined : buildLogs;
    const visible = await this.#visible.of(key, signal, async () => {
      if (searches?.of(key)) return nothingVisible;
      const startedAt = engine.port.clock.now();
      const found = await searchVisible(container, search, signal);
      const durationMs = engine.port.clock.now() - startedAt;
      if (isNothing(found)) await searches?.add(key, { startedAt, durationMs, output: '' });
      return found;
    });
    refuseVisible(visible);
    return searchLacks(visible);
  }

  async #kit(
    spec: TrialSpec,
    startId: string,
    container: Container,
    signal: AbortSignal,
  ): Promise<Kit | undefined> {
    if (spec.verify === undefined || !this.#parts.engine.capabilities.keepsImageTimes) return undefined;
    return this.#kits.of(startId, signal, async () => {
      const isReadable = (await container.layerPaths({ except: [], signal })) !== undefined;
      return isReadable ? undefined : readKit(container, signal);
    });
  }
}

function preparesBesideServices({ environment, caseName }: TrialSpec): TrialFailure {
  const [first] = environment.services ?? [];
  const why = 'leaves processes running, or its image has volumes, so it would run in each sandbox';
  const message = `${first?.place}: prepare of ${caseName} ${why}; beside services that is not possible`;
  return taskFailure('prepare', message);
}

function labelsOf({ batchId, runId, caseName, ordinal }: TrialSpec): Record<string, string> {
  return {
    'offsite.batch': batchId,
    'offsite.run': runId,
    'offsite.case': caseName,
    'offsite.ordinal': String(ordinal),
  };
}

/** All that decides whether the services of a case work, as a key. */
function servicesOf({ caseName, environment, sandbox }: TrialSpec, of: 'images' | 'health') {
  const { cpus, memory, disk, pids, security, runtime } = sandbox;
  const described = (environment.services ?? []).map(({ files = [], ...service }) => ({
    ...service,
    files: files.map(keyOfFile),
  }));
  const key = JSON.stringify(['services', of, described, cpus, memory, disk, pids, security, runtime]);
  return { key, what: `services of ${caseName}` };
}

function keyOfFile(file: PlacedFile) {
  if (!('content' in file)) return file;
  return { ...file, content: createHash('sha256').update(file.content).digest('hex') };
}

/** The agent's files are in the sandbox that verify runs in, so these variables let it run or load them. */
function openTo({ openVariables }: StartImage): string[] {
  if (openVariables.length === 0) return [];
  const names = openVariables.join(', ');
  return [
    `programs that the agent cannot replace: ${names} of the environment names a folder in the workspace`,
  ];
}

function uncountedDisk({ hasQuota }: Container): string {
  const where = hasQuota ? ' where it is graded' : '';
  return `an exact disk limit${where}: the disk of its engine cannot be read by this process as root`;
}
