import type Docker from 'dockerode';
import type { Capabilities } from './capabilities.ts';
import type { ContainerSpec } from './container/container-spec.ts';
import type { Container } from './container.ts';
import type { Image } from './image.ts';
import type { KeptSnapshot } from './snapshot/kept-snapshots.ts';
import type { SnapshotRequest, SnapshotResult } from './snapshot.ts';
import type { SweepOptions, Swept } from './sweep.ts';

/** A Docker-compatible engine. Disposal removes every container of this instance. */
export interface Engine extends AsyncDisposable {
  /** Where it was found, and what named it: for messages. */
  readonly address: string;
  readonly instance: string;
  /** dockerode itself, for making base images. */
  readonly docker: Docker;
  readonly capabilities: Capabilities;
  /** Requests sent to the engine so far. */
  readonly roundTrips: number;
  /** The image a name or id stands for, if the engine has it. */
  findImage(name: string, signal?: AbortSignal): Promise<Image | undefined>;
  /** Creates a container and does not start it. Throws when a limit cannot be enforced. */
  createContainer(spec: ContainerSpec, signal?: AbortSignal): Promise<Container>;
  /** The image of a state that is built once and shared. */
  snapshot(request: SnapshotRequest, signal?: AbortSignal): Promise<SnapshotResult>;
  /** The snapshots that the engine keeps. */
  keptSnapshots(signal?: AbortSignal): Promise<KeptSnapshot[]>;
  /** Removes snapshots, but for those that came into use; resolves with those removed. */
  removeSnapshots(snapshots: readonly KeptSnapshot[], signal?: AbortSignal): Promise<KeptSnapshot[]>;
  /** Removes what dead instances left; never what a living one owns. */
  sweep(signal?: AbortSignal, options?: SweepOptions): Promise<Swept>;
}
