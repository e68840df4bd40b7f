import type { ImageBuilder } from './build/find-builder.ts';
import type { ContainerSpec } from './container/container-spec.ts';
import type { Container } from './container.ts';
import type { Network, NetworkRequest } from './network/network.ts';
import type { Capabilities, EnginePort } from './port/engine-port.ts';
import type { Image } from './port/images.ts';
import type { ObtainImage } from './pull/obtain-image.ts';
import type { Service, ServiceSpec } from './service.ts';
import type { KeptSnapshot } from './snapshot/kept-snapshots.ts';
import type { SnapshotStore } from './snapshot.ts';
import type { SweepOptions, Swept } from './sweep.ts';

export interface KeepRequest {
  /** The image that the container was made from. */
  parentImageId: string;
  /** What it is, for people. */
  description: string;
}

/** A container engine, as Offsite uses it. Disposal removes every container of this instance. */
export interface Engine extends SnapshotStore, AsyncDisposable {
  /** Its address and where that comes from, for messages. */
  readonly address: string;
  readonly instance: string;
  /** What the configuration calls it. Undefined if the Offsite process has no other engine. */
  readonly name?: string | undefined;
  /** The most trials at a time. Undefined: as many as its cores and memory allow. */
  readonly trials?: number | undefined;
  /** The port below this: for building base images and for inspecting what is on the engine. */
  readonly port: EnginePort;
  readonly capabilities: Capabilities;
  /** What its machine has that not every machine has. */
  readonly labels: readonly string[];
  /** Requests sent to the engine so far. */
  readonly roundTrips: number;
  /** The image a name or id stands for, if the engine has it. */
  findImage(name: string, signal?: AbortSignal): Promise<Image | undefined>;
  /** The same, and pulls it if the pull policy says so. */
  readonly obtainImage: ObtainImage;
  /** Creates a container without starting it. Throws if a limit cannot be enforced. */
  createContainer(spec: ContainerSpec, signal?: AbortSignal): Promise<Container>;
  /** Opens a network without a way out, for some containers. Throws if this engine cannot have one. */
  openNetwork(request: NetworkRequest, signal: AbortSignal): Promise<Network>;
  /** Creates a server's container without starting it. Throws if a limit cannot be enforced. */
  createService(spec: ServiceSpec, signal: AbortSignal): Promise<Service>;
  /** The best builder that this engine and this machine offer. */
  builder(signal?: AbortSignal): Promise<ImageBuilder>;
  /**
   * Keeps an image of a container in which only init runs, as snapshots are kept. Resolves with the image's
   * id.
   */
  keep(container: Container, request: KeepRequest, signal?: AbortSignal): Promise<string>;
  /** The snapshots that the engine keeps. */
  keptSnapshots(signal?: AbortSignal): Promise<KeptSnapshot[]>;
  /** Removes snapshots, except those that are now in use; resolves with those removed. */
  removeSnapshots(snapshots: readonly KeptSnapshot[], signal?: AbortSignal): Promise<KeptSnapshot[]>;
  /**
   * Removes what dead instances left behind, and what nobody can find any more; never what a living one owns.
   */
  sweep(signal?: AbortSignal, options?: SweepOptions): Promise<Swept>;
}
