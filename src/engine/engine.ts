import type { ContainerSpec } from './container/container-spec.ts';
import type { Container } from './container.ts';
import type { Capabilities } from './port/capabilities.ts';
import type { EnginePort } from './port/engine-port.ts';
import type { Image } from './port/images.ts';
import type { KeptSnapshot } from './snapshot/kept-snapshots.ts';
import type { SnapshotRequest } from './snapshot/snapshot-request.ts';
import type { SnapshotResult } from './snapshot.ts';
import type { SweepOptions, Swept } from './sweep.ts';

/** A container engine, as Offsite uses it. Disposal removes every container of this instance. */
export interface Engine extends AsyncDisposable {
  /** Where it was found, and what named it: for messages. */
  readonly address: string;
  readonly instance: string;
  /** What all of this stands on: for making base images, and for looking at what is on the engine. */
  readonly port: EnginePort;
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
