import { posix } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { serviceOutput } from '../../bounds/sandbox.ts';
import type { Artifact } from '../../contract/report.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Network, NetworkMember } from '../../engine/network/network.ts';
import type { Checked, Service } from '../../engine/service.ts';
import type { BlobStore } from '../../ledger/blobs.ts';
import type { ServiceRecord } from '../../record/environment.ts';
import type { PlannedService } from '../../suite/services.ts';
import { type TrialFailure, taskFailure, unusable } from '../blame.ts';
import { serviceLogPath } from '../collect/artifacts.ts';
import type { ServiceImage } from './service-image.ts';
import { hasUser } from './start-image.ts';

/** A sandbox's part of the network of services. */
export interface ServiceAccess extends AsyncDisposable {
  network: ContainerSpec['network'];
  /** The services, for the sandbox's `/etc/hosts`. */
  hosts: Readonly<Record<string, string>>;
}

/**
 * The services of one trial, on a network of its own. They run until the trial has been graded, so what the
 * agent did to them is graded too. Disposing removes them with their network.
 */
export interface TrialServices extends AsyncDisposable {
  /**
   * Resolves once all have started in the order in which they need each other, and all that have a health
   * check are healthy. Rejects with a `TrialFailure` of kind `task`.
   */
  readonly ready: Promise<void>;
  /** Lets a sandbox reach them. The services can reach only the agent's own sandbox, by its name. */
  join(whose: 'agent' | 'grading', network: 'none' | 'open', signal: AbortSignal): Promise<ServiceAccess>;
  /** What became of them until now, with their logs as artifacts. */
  found(blobs: BlobStore): Promise<{ services: ServiceRecord[]; artifacts: Artifact[] }>;
}

export interface ServicesRequest {
  engine: Engine;
  clock: Clock;
  images: readonly ServiceImage[];
  /** The id of the image with Offsite's own programs. */
  baseImageId: string;
  /** The name that services reach the agent's sandbox by, besides `sandbox`. */
  sandboxName: string | undefined;
  labels: Readonly<Record<string, string>>;
}

/** Opens the network of a trial's services, and begins to start them. */
export async function startServices(request: ServicesRequest, parent: AbortSignal): Promise<TrialServices> {
  const { engine, images, baseImageId, labels, sandboxName } = request;
  const disposed = new AbortController();
  const signal = AbortSignal.any([parent, disposed.signal]);
  const network = await engine.openNetwork({ imageId: baseImageId, labels }, signal);
  const names = namesOf(images.map(({ planned }) => planned));
  const running = images.map((image, index) => new RunningService(request, image, addressOf(index), names));
  const ready = startInOrder(running, network, signal);
  // A caller may dispose of them without waiting.
  ready.catch(() => undefined);
  let graders = 0;
  return {
    ready,
    async join(whose, own, joining) {
      const address = whose === 'agent' ? sandboxAddress : graderAddress(graders++);
      const hosts = { ...names, ...(sandboxName !== undefined && { [sandboxName]: address }) };
      const member = await network.join({ address, hostName: 'sandbox', network: own, hosts }, joining);
      return { network: member.network, hosts, [Symbol.asyncDispose]: () => member[Symbol.asyncDispose]() };
    },
    async found(blobs) {
      const all = await Promise.all(running.map((each) => each.found(blobs)));
      return {
        services: all.map(({ record }) => record),
        artifacts: all.flatMap(({ artifact }) => artifact),
      };
    },
    async [Symbol.asyncDispose]() {
      disposed.abort(new Error('the trial has ended'));
      await ready.catch(() => undefined);
      await Promise.all([network, ...running].map((each) => each[Symbol.asyncDispose]()));
    },
  };
}

/** Rejects with the first failure, once nothing is being started any more. */
async function startInOrder(
  running: readonly RunningService[],
  network: Network,
  signal: AbortSignal,
): Promise<void> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const started = new Map<RunningService, Promise<void>>();
  const begin = (service: RunningService): Promise<void> => {
    const known = started.get(service);
    if (known) return known;
    const starting = (async () => {
      for (const { service: name, until } of service.planned.dependsOn) {
        const needed = running.find(({ planned }) => planned.name === name);
        if (!needed) continue;
        await begin(needed);
        if (until === 'healthy') await needed.healthy(either);
        if (until === 'ended') await needed.ended(either);
      }
      await service.start(network, either);
    })();
    started.set(service, starting);
    return starting;
  };
  const each = running.map(async (service) => {
    try {
      await begin(service);
      await service.healthy(either);
    } catch (error) {
      failed.abort(error);
      throw error;
    }
  });
  const settled = await Promise.allSettled(each);
  signal.throwIfAborted();
  failed.signal.throwIfAborted();
  for (const one of settled) if (one.status === 'rejected') throw one.reason;
  for (const service of running) await service.requireNotFailed(signal);
}

/** A service of a trial. Its methods throw a {@link TrialFailure} of kind `task` if it fails. */
class RunningService implements AsyncDisposable {
  readonly planned: PlannedService;
  readonly #request: ServicesRequest;
  readonly #image: ServiceImage;
  readonly #address: string;
  readonly #names: Record<string, string>;
  readonly #stop = new AbortController();
  #member: NetworkMember | undefined;
  #service: Service | undefined;
  #healthy: Promise<void> | undefined;
  #startedAt: number | undefined;
  #healthyAt: number | undefined;
  #isOutOfDisk = false;

  /** @param names the addresses of all services */
  constructor(request: ServicesRequest, image: ServiceImage, address: string, names: Record<string, string>) {
    this.#request = request;
    this.#image = image;
    this.#address = address;
    this.#names = names;
    this.planned = image.planned;
  }

  async start(network: Network, signal: AbortSignal): Promise<void> {
    const { engine, sandboxName, labels, clock } = this.#request;
    const { name, files = [], volumes = [], hosts } = this.planned;
    const place = { address: this.#address, hostName: name, network: 'none' as const, hosts: {} };
    this.#member = await network.join(place, signal);
    const sandbox = { sandbox: sandboxAddress, ...(sandboxName && { [sandboxName]: sandboxAddress }) };
    const service = await engine.createService(
      {
        ...this.#image.container,
        network: this.#member.network,
        hosts: { ...hosts, ...this.#names, ...sandbox },
        labels: { ...labels, 'offsite.service': name },
      },
      signal,
    );
    this.#service = service;
    if (files.length > 0) await service.put(files, '/', signal);
    for (const path of volumes)
      if ((await service.kindOf(path, signal)) === 'nothing')
        await service.put([{ path, folder: true, mode: 0o777 }], '/', signal);
    try {
      await service.start(signal);
    } catch (error) {
      signal.throwIfAborted();
      await this.#requireStartable(service, signal);
      throw error;
    }
    this.#startedAt = clock.now();
    this.#watchDisk(service);
  }

  /** Throws if the container has no such program, or no such user. */
  async #requireStartable(service: Service, signal: AbortSignal): Promise<void> {
    const { container, path } = this.#image;
    const { name, place } = this.planned;
    const [program = ''] = container.service.command;
    const places = program.includes('/')
      ? [posix.resolve(container.workingDir ?? '/', program)]
      : path.map((folder) => posix.join(folder, program));
    let isThere = false;
    for (const each of places) isThere ||= (await service.kindOf(each, signal)) === 'other';
    if (!isThere) throw unusable(`${place}: the service ${name} has no program ${JSON.stringify(program)}`);
    const { user = '' } = container;
    if (!(await hasUser(service, user, signal)))
      throw unusable(`${place}: the image of the service ${name} has no user ${user}`);
  }

  healthy(signal: AbortSignal): Promise<void> {
    this.#healthy ??= this.#untilHealthy(signal);
    return this.#healthy;
  }

  /**
   * Waits until the health check succeeds. The check runs more often than its interval says, so that trials
   * wait less. It gets as much time as with its own interval, and at least as many attempts.
   */
  async #untilHealthy(signal: AbortSignal): Promise<void> {
    const service = this.#service;
    const { healthcheck } = this.#image;
    if (!service || !healthcheck) return;
    const { clock } = this.#request;
    const { command, interval, timeout, startPeriod, retries } = healthcheck;
    const argv = typeof command === 'string' ? ['/bin/sh', '-c', command] : command;
    const begun = clock.now();
    const patience = Math.min(startPeriod + retries * interval, serviceOutput.time.health);
    for (let attempts = 1; ; attempts++) {
      const checked = await service.check(argv, timeout, signal);
      if (checked.exitCode === 0) break;
      const ended = await service.exitCode(signal);
      if (ended !== undefined) throw this.#failed(service, `ended with ${ended}`);
      const waited = clock.now() - begun;
      if ((waited >= patience && attempts >= retries) || waited >= serviceOutput.time.health)
        throw this.#neverHealthy(service, checked, waited);
      await clock.sleep(Math.min(interval, serviceOutput.time.poll), signal);
    }
    this.#healthyAt = clock.now();
  }

  /** Waits until it has ended with exit code 0, because another service needs that. */
  async ended(signal: AbortSignal): Promise<void> {
    const service = this.#service;
    if (!service) return;
    const { clock } = this.#request;
    const begun = clock.now();
    while (clock.now() - begun < serviceOutput.time.health) {
      const exitCode = await service.exitCode(signal);
      if (exitCode === 0) return;
      if (exitCode !== undefined) throw this.#failed(service, `ended with ${exitCode}`);
      await clock.sleep(serviceOutput.time.poll, signal);
    }
    throw this.#failed(service, `did not end in ${serviceOutput.time.health / 1000} s`);
  }

  /** One round trip. */
  async requireNotFailed(signal: AbortSignal): Promise<void> {
    const service = this.#service;
    const exitCode = await service?.exitCode(signal);
    if (service && exitCode) throw this.#failed(service, `ended with ${exitCode}`);
  }

  #neverHealthy(service: Service, { exitCode, detail }: Checked, waited: number): TrialFailure {
    const how = exitCode === undefined ? 'did not finish' : `exited with ${exitCode}`;
    // Most programs say in their last line what is wrong, such as Python after its traceback.
    const lines = detail.split('\n');
    const printed = detail === '' ? '' : `: ${lines.at(-1)}`;
    const seconds = Math.round(waited / 1000);
    const what = `was not healthy after ${seconds} s; its check ${how}${printed}`;
    return this.#failed(service, what, lines.length > 1 ? `${detail}\n` : '');
  }

  #failed(service: Service, what: string, checked = ''): TrialFailure {
    const { name, place } = this.planned;
    const output = checked + service.log().text.slice(-serviceOutput.bytes.shown);
    const message = `${place}: the service ${name} ${what}`;
    return taskFailure('sandbox', message, output || undefined);
  }

  async found(blobs: BlobStore): Promise<{ record: ServiceRecord; artifact: Artifact[] }> {
    const { name, image, build } = this.planned;
    const { bytes, truncated } = this.#service?.log() ?? { bytes: Buffer.alloc(0), truncated: false };
    const kept = bytes.length === 0 ? undefined : await blobs.put(bytes);
    const exitCode = await this.#service?.exitCode().catch(() => undefined);
    const [startedAt, healthyAt] = [this.#startedAt, this.#healthyAt];
    const record: ServiceRecord = {
      name,
      image: image?.mappedTo ?? image?.name ?? `built from ${build?.name}`,
      imageId: this.#image.container.imageId,
      ...(startedAt !== undefined && { startedAt }),
      ...(startedAt !== undefined && healthyAt !== undefined && { healthyAfterMs: healthyAt - startedAt }),
      ...(exitCode !== undefined && { exitCode }),
      ...(this.#isOutOfDisk && { outOfDisk: true as const }),
      ...(kept && { log: kept.sha256 }),
      ...(truncated && { logTruncated: true as const }),
    };
    const path = serviceLogPath(name);
    return { record, artifact: kept ? [{ path, byteSize: kept.byteSize, sha256: kept.sha256 }] : [] };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the service is removed'));
    await this.#service?.[Symbol.asyncDispose]();
    await this.#member?.[Symbol.asyncDispose]();
  }

  /** Ends the service when it has written more than it may. */
  #watchDisk(service: Service): void {
    const disk = service.watchDisk(this.#image.container.diskBytes ?? Number.POSITIVE_INFINITY);
    this.#stop.signal.addEventListener('abort', () => disk[Symbol.dispose](), { once: true });
    const watch = async () => {
      await disk.exceeded;
      this.#isOutOfDisk = true;
      await service.kill();
    };
    // If the engine does not answer, the trial's own requests fail too.
    watch().catch(() => undefined);
  }
}

/**
 * Addresses on the network of a trial's services. Every trial has the same ones, because no two networks are
 * connected.
 */
const network = '10.213.0';

/** The addresses of sandboxes are above those of services, of which there are few. */
const firstSandbox = 100;

/** The agent's sandbox. */
const sandboxAddress = `${network}.${firstSandbox}`;

/** The address of the service at an index. */
function addressOf(index: number): string {
  return `${network}.${2 + index}`;
}

/** The address of the fresh sandbox of this number, from 0. A trial is graded a few times. */
function graderAddress(count: number): string {
  return `${network}.${firstSandbox + 1 + (count % 100)}`;
}

/** The addresses of services by all their names. */
function namesOf(services: readonly Pick<PlannedService, 'name' | 'aliases'>[]): Record<string, string> {
  return Object.fromEntries(
    services.flatMap(({ name, aliases }, index) =>
      [name, ...aliases].map((each) => [each, addressOf(index)]),
    ),
  );
}
