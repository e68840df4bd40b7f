import type { Engine } from '../engine/engine.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Config } from '../suite/config-file.ts';
import type { HostEnvironment } from '../trial/prepare/environment.ts';

/** The configuration as read at one time, with what was made from it. */
export interface ConfigRevision {
  config: Config;
  gateway: Gateway;
  /** The host's environment variables that sandboxes may use. */
  host: HostEnvironment;
  /** Trials at a time. */
  readonly concurrency: number;
  /** How many more may run if this engine joins. If not given, none. */
  trialsOn?: ((engine: Engine) => number) | undefined;
}

interface Kept {
  revision: ConfigRevision;
  /** Each ends when a trial that uses the revision has ended. */
  uses: Set<Promise<void>>;
}

/**
 * The current config revision, and earlier ones that running trials still use. A revision's gateway closes
 * when another revision is current and the last trial that uses it has ended.
 */
export class ConfigRevisions implements AsyncDisposable {
  #kept: Kept;
  readonly #closing = new Set<Promise<void>>();

  constructor(first: ConfigRevision) {
    this.#kept = { revision: first, uses: new Set() };
  }

  get current(): ConfigRevision {
    return this.#kept.revision;
  }

  /** The current revision. Its gateway stays open at least until `use` is disposed. */
  use(): { revision: ConfigRevision; use: Disposable } {
    const { revision, uses } = this.#kept;
    const { promise, resolve } = Promise.withResolvers<void>();
    uses.add(promise);
    void promise.then(() => uses.delete(promise));
    return { revision, use: { [Symbol.dispose]: resolve } };
  }

  /** Makes another revision the current one. */
  replace(revision: ConfigRevision): void {
    const closing = close(this.#kept).finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
    this.#kept = { revision, uses: new Set() };
  }

  /** Closes all gateways, after their last trials. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#closing);
    await this.#kept.revision.gateway[Symbol.asyncDispose]();
  }
}

async function close({ revision, uses }: Kept): Promise<void> {
  await Promise.all(uses);
  await revision.gateway[Symbol.asyncDispose]();
}
