import type { Clock } from '../clock.ts';
import type { ModelConfig } from '../suite/model-config.ts';
import type { Network } from './hosts/network.ts';
import type { Room } from './room.ts';
import type { Upstream } from './upstream.ts';

export interface GatewayOptions {
  models: Readonly<Record<string, ModelConfig>>;
  /** Where models' keys are looked up, and `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`. */
  env: NodeJS.ProcessEnv;
  clock: Clock;
  /**
   * Makes the upstream of a scripted model from the file that its configuration names; one for each session.
   */
  scripted(file: string): Upstream;
  /** PEM certificates of authorities to trust besides the system's. */
  caBundle?: string | Buffer | undefined;
  /** From 0 (inclusive) to 1 (exclusive); spreads the waits between tries. */
  random?: () => number;
  /** The way to the hosts of an allow-list; this machine's own unless given. */
  network?: Network;
}

export interface GatewayParts extends GatewayOptions {
  random: () => number;
  network: Network;
  room: Room;
}
