import { statfs } from 'node:fs/promises';
import type { Clock } from '../base/clock.ts';
import { infrastructureError } from '../base/offsite-error.ts';
import { Semaphore } from '../base/semaphore.ts';
import type { PlannedService } from '../suite/services.ts';
import type { TrialSpec, TrialStep } from '../trial/spec.ts';

/**
 * Milliseconds between the starts of two trials, so that the first trials of a batch do not reach the engine
 * all at once.
 */
const paceMs = 50;

/** Environments built at a time. Network and disk limit each build, and its trials wait for it. */
const buildsAtATime = 2;

export interface AdmissionParts {
  clock: Clock;
  /** Trials at a time. */
  concurrency: number;
  /** What all trials together may take, if some of them have services. */
  room: Size;
  /** Throws if no further trial should start, for example on a full disk. */
  requireRoom(): Promise<void>;
  /** Called when a trial begins to wait for its permit. */
  onWait?: (() => void) | undefined;
}

/** How many requests a model takes at a time, if that changes. */
export interface AdaptingLimit {
  readonly limit: number;
  onMove(listener: (limit: number) => void): Disposable;
}

/** Trials for each request that a model takes at a time. A trial does not call its model all the time. */
const trialsPerRequest = 2;

/** What admission needs to know of a trial. */
export interface Applicant {
  /** Which trial this is. */
  spec: object;
  model: string;
  /** Requests that its model takes at a time. A trial makes about one at a time. */
  maxParallel: number | undefined;
  /** Set if this number adapts: then `maxParallel` is the most that it may become. */
  adapting?: AdaptingLimit | undefined;
  size: TrialSize;
  /** Resolves when its engine has room for it; disposing gives the room back. */
  engineRoom?: (signal: AbortSignal) => Promise<Disposable>;
}

/**
 * Gives permits to start trials and to build environments. A build needs no permit of a trial. The limits can
 * change while trials run.
 */
export class Admission {
  readonly trials: Semaphore<Applicant>;
  readonly builds = new Semaphore(buildsAtATime);
  readonly #models = new Map<string, Semaphore<Applicant>>();
  readonly #parts: AdmissionParts;
  #lastStart = Number.NEGATIVE_INFINITY;
  #pacing: Promise<void> = Promise.resolve();

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
    const { room, concurrency } = parts;
    this.trials = new Semaphore(concurrency, (running, next) => {
      const sizes = running.map(({ size }) => size);
      return fitsBeside(sizes, next.size, room);
    });
  }

  /** How many trials may run at a time from now on. Running trials continue. */
  set concurrency(limit: number) {
    this.trials.limit = limit;
  }

  get concurrency(): number {
    return this.trials.limit;
  }

  /**
   * Resolves with a permit once the trial may start; disposing gives it back. Rejects if the disk has no
   * room, and if the signal aborts.
   */
  async enter(applicant: Applicant, signal: AbortSignal): Promise<Disposable> {
    const { maxParallel, engineRoom } = applicant;
    using permits = new DisposableStack();
    // The model's permit comes first, so that a trial that waits for its model takes no permit from others.
    if (maxParallel !== undefined)
      permits.use(await this.#acquire(this.#permitsOf({ ...applicant, maxParallel }), applicant, signal));
    if (engineRoom) permits.use(await engineRoom(signal));
    permits.use(await this.#acquire(this.trials, applicant, signal));
    await this.#parts.requireRoom();
    await this.#pace(signal);
    return permits.move();
  }

  /**
   * The trial that gets the next permit, whichever running trial ends first; undefined if none waits, or if
   * that depends on which one ends.
   */
  get next(): Applicant | undefined {
    const [first] = this.trials.line;
    if (first) return first;
    const [model, ...others] = new Set(this.trials.holders.map((running) => running.model));
    if (model === undefined || others.length > 0) return undefined;
    return this.#models.get(model)?.line[0];
  }

  /** Whether a trial waits for a permit. */
  isWaiting(spec: object): boolean {
    return [this.trials, ...this.#models.values()].some(({ line }) => line.some((one) => one.spec === spec));
  }

  #acquire(permits: Semaphore<Applicant>, applicant: Applicant, signal: AbortSignal): Promise<Disposable> {
    const permit = permits.acquire(signal, applicant);
    if (permits.line.includes(applicant)) this.#parts.onWait?.();
    return permit;
  }

  #permitsOf({ model, maxParallel, adapting }: Applicant & { maxParallel: number }): Semaphore<Applicant> {
    const kept = this.#models.get(model);
    if (kept) return kept;
    const permits = new Semaphore<Applicant>(adapting ? trialsPerRequest * adapting.limit : maxParallel);
    adapting?.onMove((limit) => {
      permits.limit = trialsPerRequest * limit;
    });
    this.#models.set(model, permits);
    return permits;
  }

  /** Lets trials start one after another; without a wait if the last trial started long enough ago. */
  #pace(signal: AbortSignal): Promise<void> {
    const turn = this.#pacing.then(async () => {
      const { clock } = this.#parts;
      const since = clock.now() - this.#lastStart;
      // A clock that was set back must not delay trials.
      if (since >= 0 && since < paceMs) await clock.sleep(paceMs - since, signal);
      this.#lastStart = clock.now();
    });
    this.#pacing = turn.catch(() => undefined);
    return turn;
  }
}

/**
 * Bytes that must be free in the data folder before a trial starts: enough for its result and those of the
 * running trials. This is more than the ledger's reserve, so that releasing the reserve lets no trial start.
 */
const neededBytes = 10 * 1024 ** 2;

/**
 * Throws `DISK_FULL` if the results of another trial might not fit on the disk. Running trials continue, and
 * finished results are kept.
 */
export async function requireRoomForResults(dataFolder: string): Promise<void> {
  const { bavail, bsize } = await statfs(dataFolder);
  const free = bavail * bsize;
  if (free >= neededBytes) return;
  throw infrastructureError(
    'DISK_FULL',
    `the disk of ${dataFolder} is full: ${Math.floor(free / 1024)} KiB are free; no more trials start`,
    { hint: 'Free some space, then run `offsite resume`. Finished results are kept and reported.' },
  );
}

/** `cpus` is in processors, `memory` in bytes. */
export interface Size {
  cpus: number;
  memory: number;
}

/** What the containers of a trial may take of a machine, by their limits. */
export interface TrialSize {
  sandbox: Size;
  /** All services that run at a time. Zero if the case has none. */
  services: Size;
}

const nothing: Size = { cpus: 0, memory: 0 };

/**
 * The size of a trial. The services of a case live until it is graded, so those of its tests run beside them.
 * The steps of a task are graded one at a time.
 */
export function sizeOfTrial(spec: TrialSpec): TrialSize {
  const { cpus, memory } = spec.sandbox;
  const ofTests = (spec.steps?.list ?? [spec]).map((graded) => ofFreshTests(graded, spec));
  const largest = {
    cpus: Math.max(...ofTests.map((size) => size.cpus)),
    memory: Math.max(...ofTests.map((size) => size.memory)),
  };
  const services = sumOf([ofServices(spec.environment.services, spec.sandbox), largest]);
  return { sandbox: { cpus, memory }, services };
}

function ofFreshTests(
  { tests, testsIn }: Pick<TrialSpec | TrialStep, 'tests' | 'testsIn'>,
  spec: TrialSpec,
): Size {
  if (!tests?.fresh) return nothing;
  const { environment, sandbox } = testsIn ?? spec;
  return ofServices(environment.services, sandbox);
}

/** The limits of a service are those of the sandbox, unless it has its own. */
function ofServices(services: readonly PlannedService[] = [], { cpus, memory }: Size): Size {
  return sumOf(
    services.map(({ resources }) => ({ cpus: resources.cpus ?? cpus, memory: resources.memory ?? memory })),
  );
}

export function sumOf(sizes: readonly Size[]): Size {
  return {
    cpus: sizes.reduce((sum, { cpus }) => sum + cpus, 0),
    memory: sizes.reduce((sum, { memory }) => sum + memory, 0),
  };
}

/** A quarter of the memory stays for the engine, its page cache and other programs. */
export function roomOf({ cpus, memoryBytes }: { cpus: number; memoryBytes: number }): Size {
  return { cpus, memory: memoryBytes * 0.75 };
}

/**
 * Whether a trial may run beside others. If none of them has services, the number of trials alone decides, so
 * this returns true. Otherwise all of them together must fit into the room. A trial alone may always run.
 */
export function fitsBeside(running: readonly TrialSize[], next: TrialSize, room: Size): boolean {
  const all = [...running, next];
  if (running.length === 0 || all.every(({ services }) => services.memory === 0)) return true;
  const { cpus, memory } = sumOf(all.flatMap(({ sandbox, services }) => [sandbox, services]));
  return cpus <= room.cpus && memory <= room.memory;
}
