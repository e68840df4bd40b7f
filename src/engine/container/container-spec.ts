import type { ContainerRequest } from '../port/containers.ts';

/** A server, as a container has it. */
export type ServiceProgram = Required<Pick<ContainerRequest, 'command' | 'env' | 'memoryFolders'>>;

/** What a container is made of, and its limits. */
export interface ContainerSpec
  extends Pick<
      ContainerRequest,
      'imageId' | 'network' | 'memoryBytes' | 'pids' | 'user' | 'hostName' | 'mounts'
    >,
    Pick<ContainerRequest, 'runtime'> {
  /** The caller's labels; `engine/` adds its own. */
  labels?: ContainerRequest['labels'];
  /**
   * `compatible`: root with the five capabilities that package managers, chown and su need. `strict`: no
   * capability at all, and a user that is not root.
   */
  security: 'compatible' | 'strict';
  /** Processors' worth of time, fractions allowed. */
  cpus: number;
  /** Open files of one process; default: the engine's. It cannot exceed what the engine itself may open. */
  nofile?: number;
  /** Bytes that all its files may take; checked once a second while a command runs. Default: unlimited. */
  diskBytes?: number | undefined;
  /** Whether its disk limit may be raised later, so that the engine's storage must not limit it too. */
  diskGrows?: boolean | undefined;
  /**
   * The environment of every command in it. It never becomes part of the container or of an image made from
   * it.
   */
  env?: Readonly<Record<string, string>>;
  /** Absolute; created if missing. */
  workingDir: string;
  /**
   * A program that runs instead of the idle init. The container ends with it. Its stdin stays open until the
   * attached client leaves. The container's files are read-only.
   */
  program?: readonly string[] | undefined;
  /**
   * A server that runs instead of the idle init. The container ends with it. Its variables become part of the
   * container.
   */
  service?: ServiceProgram | undefined;
  /**
   * For a `program` that sets up a network: gives it the capability NET_ADMIN, in its own network namespace.
   * `processesOf`: a container whose process namespace it shares, and so whose network namespace it can
   * reach.
   */
  networkAdmin?: { processesOf: string | undefined } | undefined;
  /** Addresses by name, for `/etc/hosts`. */
  hosts?: Readonly<Record<string, string>> | undefined;
  /**
   * `required` (the default): the engine must enforce Offsite's filter of system calls. `if-available`: if
   * the engine cannot, the container gets whatever filter the engine gives it.
   */
  filter?: 'required' | 'if-available' | undefined;
}

/**
 * Whether a user is root. `user` is in the engine's form: name or id, a group after a colon. No user means
 * root.
 */
export function isRoot(user: string | undefined): boolean {
  const name = user?.split(':')[0];
  return name === undefined || name === '' || name === 'root' || Number(name) === 0;
}
