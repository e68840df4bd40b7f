import type { Clock } from '../base/clock.ts';
import type { Semaphore } from '../base/semaphore.ts';
import type { ModelConfig } from '../suite/model-config.ts';
import type { Upstream } from './answer.ts';
import type { Network } from './hosts/proxy.ts';
import type { ModelLimits } from './limits/model-limits.ts';
import type { RefusedOptionsStore } from './options/refused-options.ts';
import type { Cassette } from './replay/cassette.ts';
import type { Room } from './room.ts';

export interface GatewayOptions {
  models: Readonly<Record<string, ModelConfig>>;
  /** The environment with the models' keys, and `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`. */
  env: NodeJS.ProcessEnv;
  clock: Clock;
  /** Creates the upstream of a scripted model from the file that its configuration names; one per session. */
  scripted(file: string): Upstream;
  /** Reads the cassette that the configuration of a replayed model names. */
  cassette?: ((file: string) => Cassette) | undefined;
  /** PEM certificates of authorities to trust in addition to the system's. */
  caBundle?: string | Buffer | undefined;
  /** From 0 (inclusive) to 1 (exclusive); spreads the waits between attempts. */
  random?: () => number;
  /**
   * The permits for requests to a model, by its name and its `maxParallel`: for `auto`, the most that it
   * allows. If not given, each gateway has its own.
   */
  permits?: ((model: string, maxParallel: number) => Semaphore) | undefined;
  /** Reports that requests to a model wait. */
  note?: ((message: string) => void) | undefined;
  /** The limits of models with `maxParallel: auto`. If not given, each gateway has its own. */
  limits?: ModelLimits | undefined;
  /** Keeps what servers refused to be asked for. If not given, each gateway learns it again. */
  refused?: RefusedOptionsStore | undefined;
  /** How to reach the hosts of an allow-list; default: this machine's network. */
  network?: Network;
}

export interface GatewayParts extends GatewayOptions {
  random: () => number;
  network: Network;
  limits: ModelLimits;
  room: Room;
}
