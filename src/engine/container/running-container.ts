import type { Semaphore } from '../../base/semaphore.ts';
import { processEnds } from '../../bounds/sandbox.ts';
import type { FindTar } from '../archive/tar-program.ts';
import type { ContainerState } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import type { DiskSpace } from './disk-space.ts';
import type { EndWatch } from './end-watch.ts';

/** The location of a running container on its engine's machine. */
export type HostFacts = Pick<ContainerState, 'initPid' | 'layer' | 'storage'>;

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

/** One round trip the first time, after a restart, and before the container runs. */
export async function hostFactsOf(container: RunningContainer, signal?: AbortSignal): Promise<HostFacts> {
  if (container.hostFacts) return container.hostFacts;
  const facts = await container.port.containers.state(container.id, signal);
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
