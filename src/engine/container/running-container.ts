import { startDeadline } from '../../base/deadline.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { Semaphore } from '../../base/semaphore.ts';
import { processEnds } from '../../bounds/sandbox.ts';
import type { FindTar } from '../archive/tar-program.ts';
import { containerDamaged } from '../failure.ts';
import type { HostFacts } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import type { DiskSpace } from './disk-space.ts';

/**
 * Where an engine on this machine keeps all its containers, as the first ones show, so that it need not be
 * asked about each. Empty for an engine elsewhere.
 */
export interface EnginePlaces {
  /** The folder of the containers' own layers, without quotas. */
  layers?: string;
  /** Its disk, as it was a moment ago: all containers share it. */
  disk?: { at: number; space: Promise<DiskSpace | undefined> };
  /** Files of control groups, by the name of the file, up to the container's id and after it. */
  readonly groupFiles: Map<string, readonly string[]>;
}

const places = new WeakMap<EnginePort, EnginePlaces>();

export function placesOf(port: EnginePort): EnginePlaces {
  const known = places.get(port) ?? { groupFiles: new Map() };
  places.set(port, known);
  return known;
}

/** How to read and write files with holes as such. */
export interface Holes {
  /** Asks the engine what {@link areThere} needs to know. */
  prepare(signal: AbortSignal | undefined): Promise<unknown>;
  /** Whether the container has many; undefined if that cannot be seen. */
  areThere(signal: AbortSignal | undefined): Promise<boolean | undefined>;
  tar: FindTar;
}

/**
 * The state that the functions on a container share: its id, what every exec in it gets, and what was seen so
 * far.
 */
export interface RunningContainer {
  readonly port: EnginePort;
  readonly id: string;
  /** Given to every exec and never to the container itself, where `inspect` and `commit` would show it. */
  readonly env: Readonly<Record<string, string>>;
  readonly user: string | undefined;
  /**
   * The paths of Offsite's own files, which nothing in it can replace; undefined if there are none. `init` is
   * its first process; as any other process, that program prints the count of memory kills.
   */
  readonly own: { shield: string; init: string } | undefined;
  /** Whether the engine's list of its processes is true. */
  readonly listsProcesses: boolean;
  /** Its limit on processes and threads. */
  readonly pids: number;
  /** Its limit on memory and swap together. */
  readonly memoryBytes: number;
  /** Bytes that it may take on the engine's disk. */
  diskBytes: number | undefined;
  /** Whether the engine's storage itself limits what it takes. */
  readonly hasQuota: boolean;
  holes: Holes | undefined;
  /** When its disk use was last measured; undefined before the first time. */
  diskSeen: { used: number; before: DiskSpace | undefined } | undefined;
  /** The execs in progress, to decide what a deadline may kill. */
  readonly activeExecs: Set<string>;
  /** The number of execs started so far; also the next one's tag. */
  execCount: number;
  /** Set once requested; they change with a restart. */
  hostFacts: HostFacts | undefined;
  /**
   * The control group's kill counter when it was last read; undefined if it could not be read, or was reset
   * since.
   */
  oomKills: number | undefined;
  /**
   * Whether a process inside may be able to end it. None can end the init that Offsite starts, but the kernel
   * may, for lack of memory. With a kernel of the runtime's own, what uses up the memory or the processes
   * ends that kernel. And if a restart begins with the container's shell, init may be any program.
   */
  canEndItself: boolean;
  /** Changes when Offsite begins to restart it and when it runs again. A restart kills all its commands. */
  restarts: number;
  /** One permit: all its processes are ended, or it is restarted, by one caller at a time. */
  readonly endings: Semaphore;
  readonly reportsEvents: boolean;
  /** Set before a start from which on it can end itself; undefined if the engine reports no events. */
  ends: EndWatch | undefined;
}

/**
 * At most one round trip: none where the engine's own files tell. Again after a restart, and before the
 * container runs.
 */
export async function hostFactsOf(container: RunningContainer, signal?: AbortSignal): Promise<HostFacts> {
  if (container.hostFacts) return container.hostFacts;
  const facts = await container.port.containers.hostFacts(container.id, signal);
  if (facts.initPid > 0) container.hostFacts = facts;
  return facts;
}

const pollMs = 100;

/**
 * Whether the engine knows that the container does not run. It may notice the end a moment later than a
 * request that fails because of it.
 */
export async function isNotedAsEnded({ port, id }: RunningContainer): Promise<boolean> {
  const { clock, containers } = port;
  for (
    const until = clock.now() + processEnds.time.containerNoted;
    (await containers.state(id)).isRunning;
    await clock.sleep(pollMs)
  ) {
    if (clock.now() > until) return false;
  }
  return true;
}

/** Watches a container from before a start until it is disposed: one open request to the engine. */
interface EndWatch extends Disposable {
  /**
   * Whether the container ended without a request to end it since its last start. False too if the engine was
   * not there all the time: an engine that stops ends its containers. Waits for the engine to note the end.
   */
  endedByItself(): Promise<boolean>;
  /** Resolves when the engine reports the end of the container's present run, or has done so already. */
  ended(): Promise<void>;
}

/** What the engine's events say about the container so far. */
interface Seen {
  isEnded: boolean;
  wasRequested: boolean;
}

export function watchEnd({ containers, clock }: EnginePort, id: string): EndWatch {
  const stop = new AbortController();
  const seen: Seen = { isEnded: false, wasRequested: false };
  let onEnd = Promise.withResolvers<void>();
  const follow = async () => {
    for await (const event of containers.events(id, stop.signal)) {
      if (event.kind === 'started') {
        // Otherwise somebody may wait for the end of this run already.
        if (seen.isEnded) onEnd = Promise.withResolvers();
        Object.assign(seen, { isEnded: false, wasRequested: false });
      } else if (event.kind === 'kill-requested') {
        seen.wasRequested = true;
      } else if (event.kind === 'ended') {
        seen.isEnded = true;
        onEnd.resolve();
      }
    }
  };
  let isWatched = true;
  const followed = follow()
    .catch((thrown: unknown) => {
      if (!(thrown instanceof OffsiteError)) throw thrown;
    })
    .finally(() => {
      isWatched = false;
    });
  followed.catch(() => undefined);
  return {
    async endedByItself() {
      using deadline = startDeadline(clock, processEnds.time.containerNoted);
      await Promise.race([onEnd.promise, followed, deadline.reached]);
      return isWatched && seen.isEnded && !seen.wasRequested;
    },
    ended: () => onEnd.promise,
    [Symbol.dispose]: () => stop.abort(),
  };
}

/**
 * From the next start on, processes in the container may be able to end it; see `canEndItself`. No round trip
 * to wait for.
 */
export function expectOwnEnd(container: RunningContainer): void {
  container.canEndItself = true;
  if (container.reportsEvents) container.ends ??= watchEnd(container.port, container.id);
}

/** Ends the request to the engine. After that, a container that can end itself counts as one that did. */
export function stopWatching(container: RunningContainer): void {
  container.ends?.[Symbol.dispose]();
  container.ends = undefined;
}

/**
 * The result of work in a container. If it failed because the container has ended by itself, this throws
 * `ENGINE_CONTAINER_DAMAGED`: an agent that ends its sandbox must not count as trouble of the engine. Where
 * the engine has no events, nobody knows who ended the container, and it counts as the agent.
 */
export async function blamedOnEnd<T>(container: RunningContainer, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    if (!isOfEngine(thrown) || !(await ownEndOf(container))) throw thrown;
    throw containerDamaged(`The sandbox has ended by itself: ${messageOf(thrown)}`, thrown);
  }
}

/** How far a command has come. It sets these itself. */
export interface CommandLife {
  /** It runs in the container. */
  begun: boolean;
  /** It has ended, or Offsite is about to end it, which may take a restart of the container. */
  over: boolean;
}

interface EndedWith<T> {
  mayEndContainer?: boolean | undefined;
  killed: (by: OwnEnd) => T;
}

/**
 * The result of a command, which lives no longer than its container: `killed` makes its result if the
 * container was restarted meanwhile, or ended by itself while the command ran and `mayEndContainer`.
 */
export async function withContainer<T>(
  container: RunningContainer,
  { mayEndContainer = false, killed }: EndedWith<T>,
  run: (life: CommandLife) => Promise<T>,
): Promise<T> {
  const { restarts } = container;
  const wasRestarted = () => container.restarts !== restarts;
  const life: CommandLife = { begun: false, over: false };
  try {
    return await run(life);
  } catch (thrown) {
    if (life.over || !isOfEngine(thrown)) throw thrown;
    const byRestart: OwnEnd = { oomKilled: false };
    if (wasRestarted()) return killed(byRestart);
    if (!life.begun || !mayEndContainer) throw thrown;
    const ownEnd = await ownEndOf(container);
    if (ownEnd) return killed(ownEnd);
    if (wasRestarted()) return killed(byRestart);
    throw thrown;
  }
}

function isOfEngine(thrown: unknown): thrown is OffsiteError {
  return thrown instanceof OffsiteError && thrown.kind === 'infrastructure';
}

/** How a container ended by itself. */
interface OwnEnd {
  /** Whether for lack of memory, as far as the engine knows. */
  oomKilled: boolean;
}

/** Undefined if it runs, or if a request to the engine ended it. */
async function ownEndOf(container: RunningContainer): Promise<OwnEnd | undefined> {
  const { canEndItself, ends, port, id } = container;
  try {
    if (canEndItself && !(await isNotedAsEnded(container))) return undefined;
    const { isRunning, oomKilled } = await port.containers.state(id);
    // No process inside can end Offsite's own first process, but the kernel may choose it if memory is short,
    // and any process that is root can make that likely.
    const isOwn = canEndItself
      ? ends === undefined || (await ends.endedByItself())
      : !isRunning && oomKilled && !(await wasRequested(container));
    return isOwn ? { oomKilled } : undefined;
  } catch (thrown) {
    if (thrown instanceof OffsiteError) return undefined;
    throw thrown;
  }
}

/** Whether a request to the engine may have ended the container. Takes a wait. */
async function wasRequested({ port, id, reportsEvents }: RunningContainer): Promise<boolean> {
  if (!reportsEvents) return false;
  using watch = watchEnd(port, id);
  return !(await watch.endedByItself());
}
