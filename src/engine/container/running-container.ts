import type { ContainerState } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';

/** Where a running container is on its engine's machine. */
export type HostFacts = Pick<ContainerState, 'initPid' | 'layer'>;

/**
 * What the functions on a container share: who it is, what every exec in it gets, and what was seen so far.
 */
export interface RunningContainer {
  readonly port: EnginePort;
  readonly id: string;
  /** Given to every exec and never to the container itself, where `inspect` and `commit` would show it. */
  readonly env: Readonly<Record<string, string>>;
  readonly user: string | undefined;
  /** Of the engine's machine, as the engine names it. */
  readonly arch: string;
  /** Its limit on processes and threads. */
  readonly pids: number;
  /** What it may write to its own layer. */
  readonly diskBytes: number | undefined;
  /** Execs now running, for the decision whom a deadline may kill. */
  readonly activeExecs: Set<string>;
  /** How many execs were started; the next one's tag. */
  execCount: number;
  /** Once asked for; others after a restart. */
  hostFacts: HostFacts | undefined;
  /**
   * The control group's kill counter when it was last read; undefined where it could not be, or began anew
   * meanwhile.
   */
  oomKills: number | undefined;
}
