import { startDeadline } from '../../base/deadline.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { Semaphore } from '../../base/semaphore.ts';
import { processEnds } from '../../bounds/sandbox.ts';
import type { FindTar } from '../archive/tar-program.ts';
import type { HostFacts } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { containerDamaged } from '../port/failure.ts';
import type { DiskSpace } from './disk-space.ts';

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
  /**
   * The user that its init runs as (undefined: the image's), while init can still start a command: it starts
   * one, the first.
   */
  initUser: { name: string | undefined } | undefined;
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
  /** What reads and writes files with holes as such, if the engine has it. */
  readonly tar: FindTar | undefined;
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
  /** Whether it did not start again after Offsite had ended it. */
  isLost: boolean;
  /** Changes when Offsite begins to restart it and when it runs again. A restart kills all its commands. */
  restarts: number;
  /** One permit: all its processes are ended, or it is restarted, by one caller at a time. */
  readonly endings: Semaphore;
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
interface CommandLife {
  /** It runs in the container. */
  begun: boolean;
  /** It has ended, or Offsite is about to end it, which may take a restart of the container. */
  over: boolean;
}

interface EndedWith<T> {
  mayEndContainer?: boolean | undefined;
  /** `oomKilled`: for lack of memory, as far as the engine knows. */
  killed(oomKilled: boolean): T;
}

/**
 * The result of a command, which lives no longer than its container: `killed` makes its result if the
 * container was restarted meanwhile, or ended by itself while the command ran and `mayEndContainer`.
 */
export async function withContainer<T>(
  container: RunningContainer,
  command: EndedWith<T>,
  run: (life: CommandLife) => Promise<T>,
): Promise<T> {
  const { restarts } = container;
  const wasRestarted = () => container.restarts !== restarts;
  const life: CommandLife = { begun: false, over: false };
  try {
    return await run(life);
  } catch (thrown) {
    if (life.over || !isOfEngine(thrown)) throw thrown;
    if (wasRestarted()) return command.killed(false);
    if (!life.begun || !command.mayEndContainer) throw thrown;
    const ownEnd = await ownEndOf(container);
    if (ownEnd) return command.killed(ownEnd.oomKilled);
    if (wasRestarted()) return command.killed(false);
    throw thrown;
  }
}

function isOfEngine(thrown: unknown): thrown is OffsiteError {
  return thrown instanceof OffsiteError && thrown.kind === 'infrastructure';
}

/** How a container ended by itself. Undefined if it runs, or if a request to the engine ended it. */
async function ownEndOf(container: RunningContainer): Promise<{ oomKilled: boolean } | undefined> {
  const { canEndItself, isLost, port, id } = container;
  try {
    if (canEndItself && !(await isNotedAsEnded(container))) return undefined;
    const { isRunning, oomKilled } = await port.containers.state(id);
    // No process inside can end Offsite's own first process, but the kernel may choose it if memory is short,
    // and any process that is root can make that likely.
    const mayBeOwn = canEndItself || (!isRunning && oomKilled);
    return isLost || (mayBeOwn && !(await wasRequested(container))) ? { oomKilled } : undefined;
  } catch (thrown) {
    if (thrown instanceof OffsiteError) return undefined;
    throw thrown;
  }
}

/**
 * Whether a request to the engine ended the container's last run. Also if the engine does not remember its
 * end: an engine that stops ends its containers. Takes a wait, because nothing tells which event is the last.
 */
async function wasRequested({ port: { clock, containers }, id }: RunningContainer): Promise<boolean> {
  if (containers.events === undefined) return false;
  using deadline = startDeadline(clock, processEnds.time.containerNoted);
  let isEnded = false;
  let isRequested = false;
  for await (const { kind } of containers.events(id, deadline.signal)) {
    if (kind === 'started') isEnded = isRequested = false;
    else if (kind === 'kill-requested') isRequested = true;
    else if (kind === 'ended') isEnded = true;
  }
  return isRequested || !isEnded;
}
