import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Container } from '../../engine/container.ts';
import { type PlacedFile, startUpOf } from '../../suite/environment.ts';
import { TrialFailure } from '../failure.ts';
import { type TrialSpec, testsSpec } from '../spec.ts';
import {
  containerSpec,
  engineNetwork,
  type HostEnvironment,
  passedEnvironment,
  refuseKeys,
} from './environment.ts';
import { nodeOf } from './harness-volume.ts';
import type { ImageParts, PreparationOptions } from './image-parts.ts';
import { type ModelPort, needsPort, openPort, relayImage, relayImageOf } from './model-port.ts';
import { preparedImage } from './prepared-image.ts';
import { type ServiceImage, type ServiceImages, serviceImages } from './service-image.ts';
import { type JoinedNetwork, requireHealth, startProgram } from './started-sandbox.ts';
import { startServices, type TrialServices } from './trial-services.ts';

/** What decides about a sandbox besides its trial. */
export interface GivenParts {
  /** Whether no harness runs in it. */
  grades: boolean;
  /** Services that run already. Undefined for new ones, if the case has some. */
  services: TrialServices | undefined;
}

/** Makes the containers of sandboxes, and the images that they start from. */
export class SandboxMaker {
  readonly #parts: ImageParts;
  readonly #host: HostEnvironment;
  readonly #clock: Clock;
  readonly #services: CaseServices;

  constructor(parts: ImageParts, host: HostEnvironment, clock: Clock) {
    this.#parts = parts;
    this.#host = host;
    this.#clock = clock;
    this.#services = new CaseServices(parts, clock);
  }

  /** Builds the images of a trial and of its tests if they do not exist yet. */
  async prepare(spec: TrialSpec, signal: AbortSignal, options?: PreparationOptions): Promise<void> {
    for (const each of new Set([spec, testsSpec(spec)])) {
      const env = this.#environment(each);
      await this.#services.images(each, env, signal, options);
      await preparedImage(this.#parts, each, env, signal, options);
    }
  }

  /** Creates and starts a trial's container, with its model port, and with its harness unless it grades. */
  async make(spec: TrialSpec, signal: AbortSignal, given: GivenParts) {
    const passed = this.#environment(spec);
    const serviceImages = await this.#services.images(spec, passed, signal);
    const prepared = await preparedImage(this.#parts, spec, passed, signal);
    const { imageId, start, mount, node, prepare } = prepared;
    if (start.used.name === relayImage) this.#parts.known.set(relayImage, start.id);
    const images = [...prepared.images, ...serviceImages.images];
    const hasHarness = !given.grades || prepare !== undefined;
    const mounts = [...(mount && hasHarness ? [mount] : []), ...(node && given.grades ? [node] : [])];
    const steps = [...serviceImages.steps, ...prepared.steps];
    const env = { ...passed, ...spec.environment.env };
    const own = engineNetwork(spec.sandbox);
    const make = (network: ContainerSpec['network'], named?: ContainerSpec['hosts']) => {
      const hosts = { ...spec.environment.hosts, ...named };
      const made = containerSpec(spec.sandbox, start, { network, labels: labelsOf(spec) }, env);
      return this.#parts.engine.createContainer(
        { ...made, imageId, mounts, hosts, diskGrows: given.grades },
        signal,
      );
    };
    // In this order, because disposal is in reverse: the sandbox ends before its network.
    await using around = new AsyncDisposableStack();
    await using made = new AsyncDisposableStack();
    let container: Container;
    let port: ModelPort | undefined;
    let services: TrialServices | undefined;
    let joined: JoinedNetwork | undefined;
    if (serviceImages.services.length > 0) {
      if (prepare && prepared.preparesWithScript) throw preparesBesideServices(spec);
      services =
        given.services ?? around.use(await this.#startServices(serviceImages.services, spec, signal));
      const access = around.use(await services.join(given.services ? 'grading' : 'agent', own, signal));
      joined = { network: access.network, hosts: access.hosts };
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
    for (const path of spec.environment.volumes ?? [])
      if ((await container.kindOf(path, signal)) === 'nothing')
        await container.put([{ path, folder: true, mode: 0o777 }], '/', signal);
    const startUp = startUpOf(spec.environment.startUp, start.program);
    await startProgram(container, startUp, spec, signal);
    await requireHealth(container, spec, this.#clock, signal);
    made.move();
    const besides = around.move();
    const preparedHere = prepare !== undefined;
    const started = { imageId, start, images, container, port, environment: steps };
    const more = { services, joined, besides, startUp, validatorNode: node && nodeOf(node) };
    return { ...started, ...more, preparedHere };
  }

  /**
   * Starts a container of an image that was kept of one of the trial's sandboxes. It reaches nothing but the
   * hosts of its tests, and services.
   *
   * @param joined the place of another sandbox on the network of its services
   */
  async makeKept(
    spec: TrialSpec,
    imageId: string,
    joined: JoinedNetwork | undefined,
    signal: AbortSignal,
  ): Promise<{ container: Container; port: ModelPort | undefined }> {
    const passed = this.#environment(spec);
    const { start } = await preparedImage(this.#parts, spec, passed, signal);
    const env = { ...passed, ...spec.environment.env };
    const labels = labelsOf(spec);
    const make = (network: ContainerSpec['network']) => {
      const made = containerSpec(spec.sandbox, start, { network, labels }, env);
      const all = { ...made, imageId, hosts: joined?.hosts, diskGrows: true };
      return this.#parts.engine.createContainer(all, signal);
    };
    const graded = { ...spec, sandbox: { ...spec.sandbox, network: 'none' as const } };
    await using made = new AsyncDisposableStack();
    let container: Container;
    let port: ModelPort | undefined;
    if (joined) {
      container = made.use(await make(joined.network));
      await container.start(signal);
      port = made.use(await this.#openPort(graded, joined.network, signal));
    } else {
      port = made.use(await this.#openPort(graded, 'none', signal));
      container = made.use(port ? await port.relay.startSandbox(make, signal) : await make('none'));
      if (!port) await container.start(signal);
    }
    made.move();
    return { container, port };
  }

  /** Looks all images up again. Call this if one was removed. */
  forget(): void {
    this.#parts.known.clear();
    this.#parts.starts.clear();
    this.#services.forget();
  }

  /**
   * The variables that the host passes in. Every new sandbox gets them from here, so this refuses a trial
   * that would bring a key into its sandbox.
   */
  #environment(spec: TrialSpec): Record<string, string> {
    refuseKeys(spec, this.#host);
    return passedEnvironment(spec.sandbox, this.#host);
  }

  async #startServices(images: readonly ServiceImage[], spec: TrialSpec, signal: AbortSignal) {
    const more = { baseImageId: await this.#relayImage(signal), labels: labelsOf(spec) };
    return this.#services.start(images, spec, more, signal);
  }

  async #openPort(
    spec: TrialSpec,
    network: ContainerSpec['network'],
    signal: AbortSignal,
  ): Promise<ModelPort | undefined> {
    if (!needsPort(spec, this.#parts.runners)) return undefined;
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

function preparesBesideServices({ environment, caseName }: TrialSpec): TrialFailure {
  const [first] = environment.services ?? [];
  const why = 'leaves processes running, or its image has volumes, so it would run in each sandbox';
  const message = `${first?.place}: prepare of ${caseName} ${why}; beside services that is not possible`;
  return new TrialFailure({ kind: 'task', phase: 'prepare', message });
}

function labelsOf({ batchId, runId, caseName, ordinal }: TrialSpec): Record<string, string> {
  return {
    'offsite.batch': batchId,
    'offsite.run': runId,
    'offsite.case': caseName,
    'offsite.ordinal': String(ordinal),
  };
}

/**
 * The services of a batch's cases. Services that cannot work are found once for each case, and not once for
 * each trial.
 */
class CaseServices {
  readonly #parts: ImageParts;
  readonly #clock: Clock;
  readonly #images = new Map<string, ServiceImages>();
  readonly #healthy = new Set<string>();

  constructor(parts: ImageParts, clock: Clock) {
    this.#parts = parts;
    this.#clock = clock;
  }

  /** The images of a case's services; see {@link serviceImages}. */
  async images(
    spec: TrialSpec,
    passed: Readonly<Record<string, string>>,
    signal: AbortSignal,
    options?: PreparationOptions,
  ): Promise<ServiceImages> {
    const key = keyOf('images', spec);
    this.#throwKnown(key);
    const known = this.#images.get(key);
    if (known) return known;
    try {
      const images = await serviceImages(this.#parts, spec, passed, signal, options);
      this.#images.set(key, images);
      return images;
    } catch (error) {
      this.#note(key, spec, error);
      throw error;
    }
  }

  /** Looks up each image again from now on. */
  forget(): void {
    this.#images.clear();
  }

  /** Begins to start the services of a trial. */
  async start(
    images: readonly ServiceImage[],
    spec: TrialSpec,
    more: { baseImageId: string; labels: Readonly<Record<string, string>> },
    signal: AbortSignal,
  ): Promise<TrialServices> {
    this.#throwKnown(keyOf('health', spec));
    const { engine } = this.#parts;
    const sandboxName = spec.environment.nameForServices;
    return startServices({ engine, clock: this.#clock, images, sandboxName, ...more }, signal);
  }

  /**
   * Waits for a trial's services. If they fail the first time, they are not started again for the next trial
   * of their case. Services that worked once may fail for a reason that does not last.
   */
  async ready(services: TrialServices, spec: TrialSpec): Promise<void> {
    const key = keyOf('health', spec);
    try {
      await services.ready;
      this.#healthy.add(key);
    } catch (error) {
      if (!this.#healthy.has(key)) this.#note(key, spec, error);
      throw error;
    }
  }

  #throwKnown(key: string): void {
    const failure = this.#parts.failures.get(key);
    if (failure) throw failure;
  }

  /** Keeps a failure of the case, and reports it. A build reports its own failure. */
  #note(key: string, { caseName }: TrialSpec, error: unknown): void {
    const { failures, observeBuild } = this.#parts;
    if (!(error instanceof TrialFailure) || failures.has(key)) return;
    failures.set(key, error);
    if (error.failure.phase === 'build') return;
    const state = { kind: 'failed' as const, cause: error.failure };
    observeBuild({ id: key, what: `services of ${caseName}`, state });
  }
}

/** All that decides whether the services of a case work. */
function keyOf(what: string, { environment: { services = [] }, sandbox }: TrialSpec): string {
  const { cpus, memory, disk, pids, security, runtime } = sandbox;
  const described = services.map(({ files = [], ...service }) => ({
    ...service,
    files: files.map(keyOfFile),
  }));
  return JSON.stringify(['services', what, described, cpus, memory, disk, pids, security, runtime]);
}

function keyOfFile(file: PlacedFile) {
  if (!('content' in file)) return file;
  return { ...file, content: createHash('sha256').update(file.content).digest('hex') };
}
