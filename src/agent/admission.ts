import { statfs } from 'node:fs/promises';
import type { Clock } from '../clock.ts';
import { OffsiteError } from '../offsite-error.ts';
import { Gate } from './gate.ts';

/**
 * Milliseconds between the beginnings of two trials: enough that a batch's first wave doesn't reach the
 * engine as one.
 */
const paceMs = 50;

/** Environments that are built at a time: each is bound by network and disk, and its trials wait for it. */
const buildsAtATime = 2;

export interface AdmissionParts {
  clock: Clock;
  /** Trials at a time. */
  concurrency: number;
  /** Throws where no further trial should be begun, as on a full disk. */
  requireRoom(): Promise<void>;
}

/** What is told apart in admitting a trial. */
export interface Applicant {
  model: string;
  /** Requests that its model takes at a time: a trial makes about one. */
  maxParallel: number | undefined;
}

/**
 * Who may work when: trials in their slots, and the building of environments, which takes no slot. Limits can
 * be changed while trials run.
 */
export class Admission {
  readonly trials: Gate;
  readonly builds = new Gate(buildsAtATime);
  readonly #models = new Map<string, Gate>();
  readonly #parts: AdmissionParts;
  #lastStart = Number.NEGATIVE_INFINITY;
  #pacing: Promise<void> = Promise.resolve();

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
    this.trials = new Gate(parts.concurrency);
  }

  /** Trials at a time, from now on. Those that run go on. */
  set concurrency(limit: number) {
    this.trials.limit = limit;
  }

  get concurrency(): number {
    return this.trials.limit;
  }

  /**
   * Resolves with a trial's place once it may begin; disposing gives the place up. Rejects where there is no
   * room, and on abort.
   */
  async enter({ model, maxParallel }: Applicant, signal: AbortSignal): Promise<Disposable> {
    using places = new DisposableStack();
    // The model's place first: a trial that waits for its model keeps no slot from others.
    if (maxParallel !== undefined) places.use(await this.#gateOf(model, maxParallel).enter(signal));
    places.use(await this.trials.enter(signal));
    await this.#parts.requireRoom();
    await this.#pace(signal);
    return places.move();
  }

  #gateOf(model: string, limit: number): Gate {
    const kept = this.#models.get(model);
    if (kept) return kept;
    const gate = new Gate(limit);
    this.#models.set(model, gate);
    return gate;
  }

  /** One after another; without a wait where the last trial began long enough ago. */
  #pace(signal: AbortSignal): Promise<void> {
    const turn = this.#pacing.then(async () => {
      const { clock } = this.#parts;
      const since = clock.now() - this.#lastStart;
      // A clock that was set back must not hold anybody up.
      if (since >= 0 && since < paceMs) await clock.sleep(paceMs - since, signal);
      this.#lastStart = clock.now();
    });
    this.#pacing = turn.catch(() => undefined);
    return turn;
  }
}

/**
 * Bytes to be free in the data folder before a trial is begun: its result, and those of the trials that run
 * already. More than the ledger's reserve, so that giving that back doesn't let another trial in.
 */
const neededBytes = 10 * 1024 ** 2;

/**
 * Throws `DISK_FULL` where the results of another trial might not find room. What runs already goes on, and
 * what is finished is kept.
 */
export async function requireRoomForResults(dataFolder: string): Promise<void> {
  const { bavail, bsize } = await statfs(dataFolder);
  const free = bavail * bsize;
  if (free >= neededBytes) return;
  throw new OffsiteError(
    `the disk of ${dataFolder} is full: ${Math.floor(free / 1024)} KiB are free; no more trials are begun`,
    {
      code: 'DISK_FULL',
      kind: 'infrastructure',
      hint: 'Free some space, then `offsite resume`. What is finished is kept and reported.',
    },
  );
}
