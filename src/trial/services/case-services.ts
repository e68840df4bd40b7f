import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { PlacedFile } from '../../suite/environment.ts';
import { TrialFailure } from '../failure.ts';
import type { ImageParts, PreparationOptions } from '../image/image-parts.ts';
import type { TrialSpec } from '../spec.ts';
import { type ServiceImage, type ServiceImages, serviceImages } from './service-image.ts';
import { startServices, type TrialServices } from './trial-services.ts';

/**
 * The services of a batch's cases. Services that cannot work are found once for each case, and not once for
 * each trial.
 */
export class CaseServices {
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
