import { type Clock, systemClock } from '../../base/clock.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { Manifest } from '../../engine/archive/stored-file.ts';
import { unmetWishes } from '../../engine/capabilities.ts';
import { type Kit, readKit } from '../../engine/changes/kit.ts';
import type { Container } from '../../engine/container.ts';
import type { Engine, KeepRequest } from '../../engine/engine.ts';
import type { Runner } from '../../harness/runner.ts';
import type { BuildLogs } from '../../ledger/build-logs.ts';
import { keepTexts, TextPack } from '../collect/file-texts.ts';
import {
  readWorkspace,
  smallWorkspace,
  type WorkspaceState,
  workspaceBytes,
} from '../collect/read-workspace.ts';
import type { OwnChanges } from '../collect/system-changes.ts';
import type { TrialSpec } from '../spec.ts';
import { type HostEnvironment, noHostEnvironment } from './environment.ts';
import type { PreparationOptions } from './image-parts.ts';
import { type GivenParts, SandboxMaker } from './make-sandbox.ts';
import type { ObserveBuild } from './obtain-image.ts';
import type { StartImage } from './start-image.ts';
import { type PreparedWorkspace, removeSandbox, type StartedSandbox } from './started-sandbox.ts';
import type { TrialServices } from './trial-services.ts';
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
 * of an engine, so both can happen while other trials run: `start` starts a sandbox before its trial
 * starts, with those that grade it, and `giveBack` does not wait. Disposing removes the sandboxes that were
 * not taken and waits for all removals.
 */
export class Sandboxes implements AsyncDisposable {
  readonly #engine: Engine;
  readonly #maker: SandboxMaker;
  readonly #starter: SandboxStarter;
  /** What a case's verify changes by itself, keyed by the inputs of that verify run. */
  readonly ownChanges = new OncePerImage<OwnChanges>();
  /** Protected files of workspaces that are too large to read as a whole. */
  readonly protectedFiles = new OncePerImage<Manifest>();
  /** The texts of the workspaces that prepare left. */
  readonly texts = new TextPack();
  readonly #ahead = new Map<TrialSpec, Promise<StartedSandbox>>();
  /** Sandboxes for grading that were started ahead, and what stops those that still start. */
  readonly #gradersAhead = new Map<
    TrialSpec,
    { started: Promise<StartedSandbox>[]; stop: AbortController }
  >();
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
    const parts = { engine, extraCertificates, runners, env, buildLogs, observeBuild, ...learned };
    this.#engine = engine;
    this.#maker = new SandboxMaker(parts, host, clock);
    this.#starter = new SandboxStarter(engine, this.#maker, { texts: this.texts, searches: buildLogs });
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
    const ahead = this.#ahead.get(spec);
    this.#ahead.delete(spec);
    return ahead ?? this.#starter.start(spec, signal);
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
    return this.#gradersAhead.get(spec)?.started.pop() ?? this.#startForGrading(spec, signal, services);
  }

  #startForGrading(spec: TrialSpec, signal: AbortSignal, services: TrialServices | undefined) {
    const sandbox = { ...spec.sandbox, network: 'none' as const };
    return this.#starter.start({ ...spec, sandbox }, signal, { grades: true, services });
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
      const kept = await this.#maker.makeKept(spec, image.id, fresh.joined, signal);
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
    this.#gradersAhead.set(spec, { started: graders, stop });
    const [grader] = graders;
    const started = prepared.then(() =>
      this.#starter.start(spec, signal, { grades: false, services: undefined }, grader),
    );
    this.#ahead.set(spec, started);
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
    const graders = this.#gradersAhead.get(spec);
    this.#gradersAhead.delete(spec);
    graders?.stop.abort();
    for (const each of [ahead ?? [], graders?.started ?? []].flat()) this.giveBack(each);
  }

  /** Releases a sandbox, even one that is still starting. It is removed in the background. */
  giveBack(sandbox: StartedSandbox | Promise<StartedSandbox>): void {
    // A container that cannot be removed now is removed with all others of this agent when the engine is
    // closed.
    const removal = removed(sandbox).catch(() => undefined);
    this.#removals.add(removal);
    removal.finally(() => this.#removals.delete(removal));
  }

  /** Resolves when the sandboxes that were released are removed, or cannot be removed now. */
  async removalsEnded(): Promise<void> {
    await Promise.all(this.#removals);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const spec of new Set([...this.#ahead.keys(), ...this.#gradersAhead.keys()])) this.forget(spec);
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
  return new OffsiteError('the engine no longer has the image of its sandbox', {
    code: 'IMAGE_GONE',
    kind: 'infrastructure',
    hint: 'Such images are removed when snapshots exceed their budget: `advanced.snapshots` in offsite.yaml.',
  });
}

async function removed(sandbox: StartedSandbox | Promise<StartedSandbox>): Promise<void> {
  await removeSandbox(await sandbox);
}

/**
 * Starts sandboxes, and reads what is in them. What is the same in all sandboxes of an image is read once.
 */
class SandboxStarter {
  readonly #engine: Engine;
  readonly #maker: SandboxMaker;
  readonly #texts: TextPack;
  readonly #searches: BuildLogs | undefined;
  readonly #preparedBytes = new OncePerImage<number>();
  readonly #baselines = new OncePerImage<WorkspaceState>();
  readonly #visible = new OncePerImage<Visible>();
  /** Whether the engine's disk can be seen, with one key. */
  readonly #seesDisk = new OncePerImage<boolean>();
  /** Keyed by the first image: a kit works in all images that are made from it. */
  readonly #kits = new OncePerImage<Kit | undefined>();

  /**
   * @param texts where the texts of prepared workspaces are kept
   * @param searches where it is kept which images give nothing away
   */
  constructor(
    engine: Engine,
    maker: SandboxMaker,
    { texts, searches }: { texts: TextPack; searches: BuildLogs | undefined },
  ) {
    this.#engine = engine;
    this.#maker = maker;
    this.#texts = texts;
    this.#searches = searches;
  }

  /**
   * Returns a started sandbox of the trial's prepared image.
   *
   * @param grader another one, whose workspace is read in place of this one's: the harness need not wait
   */
  async start(
    spec: TrialSpec,
    signal: AbortSignal,
    given: GivenParts = { grades: false, services: undefined },
    grader?: Promise<StartedSandbox>,
  ): Promise<StartedSandbox> {
    const { preparedHere, start, ...made } = await this.#maker.make(spec, signal, given).catch((error) => {
      const isGone = error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND';
      if (!isGone || signal.aborted) throw error;
      // Somebody removed an image after this batch last checked.
      this.#maker.forget();
      return this.#maker.make(spec, signal, given);
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
        ...unmetWishes(spec.sandbox, this.#engine.capabilities),
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
    const searches = isItsOwn ? undefined : this.#searches;
    const visible = await this.#visible.of(key, signal, async () => {
      if (searches?.of(key)) return nothingVisible;
      const startedAt = this.#engine.port.clock.now();
      const found = await searchVisible(container, search, signal);
      const durationMs = this.#engine.port.clock.now() - startedAt;
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
    if (spec.verify === undefined || !this.#engine.capabilities.keepsImageTimes) return undefined;
    return this.#kits.of(startId, signal, async () => {
      const isReadable = (await container.layerPaths({ except: [], signal })) !== undefined;
      return isReadable ? undefined : readKit(container, signal);
    });
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

function uncountedDisk({ hasQuota }: Container): string {
  const where = hasQuota ? ' where it is graded' : '';
  return `an exact disk limit${where}: the disk of its engine cannot be read by this process as root`;
}

interface Learning<Learned> {
  result: Promise<Learned>;
  /** The signal of the caller that learns. */
  signal: AbortSignal;
}

/**
 * Keeps what the first container of an image showed, because it holds for all containers of that image.
 * Callers that ask in the meantime wait for the same result.
 */
export class OncePerImage<Learned> {
  /** A batch works on few images at a time. A kept result takes up to a few megabytes. */
  static readonly #kept = 16;
  readonly #learned = new Map<string, Learning<Learned>>();

  /**
   * @param signal ends `learn`. If it aborts, a caller that waits for the result learns itself.
   * @param learn reads a started container of the image in which no harness has run yet
   */
  async of(image: string, signal: AbortSignal, learn: () => Promise<Learned>): Promise<Learned> {
    for (;;) {
      const known = this.#learned.get(image);
      if (!known) return this.#learn(image, signal, learn);
      try {
        return await known.result;
      } catch (error) {
        if (!known.signal.aborted) throw error;
        signal.throwIfAborted();
      }
    }
  }

  #learn(image: string, signal: AbortSignal, learn: () => Promise<Learned>): Promise<Learned> {
    const result = learn().catch((error) => {
      this.#learned.delete(image);
      throw error;
    });
    this.#learned.set(image, { result, signal });
    const oldest = this.#learned.keys().next().value;
    if (this.#learned.size > OncePerImage.#kept && oldest !== undefined) this.#learned.delete(oldest);
    return result;
  }
}
