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
  users: number;
  closed: PromiseWithResolvers<void>;
}

/**
 * The current config revision, and earlier ones that running trials still use. A revision's gateway closes
 * when another revision is current and the last trial that uses it has ended.
 */
export class ConfigRevisions implements AsyncDisposable {
  #kept: Kept;
  readonly #closing = new Set<Promise<void>>();

  constructor(first: ConfigRevision) {
    this.#kept = keep(first);
  }

  get current(): ConfigRevision {
    return this.#kept.revision;
  }

  /** The current revision. Its gateway stays open at least until `use` is disposed. */
  use(): { revision: ConfigRevision; use: Disposable } {
    const kept = this.#kept;
    kept.users++;
    const end = () => {
      kept.users--;
      this.#closeIfOver(kept);
    };
    return { revision: kept.revision, use: { [Symbol.dispose]: end } };
  }

  /** Makes another revision the current one. */
  replace(revision: ConfigRevision): void {
    const before = this.#kept;
    this.#kept = keep(revision);
    const closing = before.closed.promise.finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
    this.#closeIfOver(before);
  }

  /** Closes all gateways, after their last trials. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#closing);
    await this.#kept.revision.gateway[Symbol.asyncDispose]();
  }

  #closeIfOver(kept: Kept): void {
    if (kept === this.#kept || kept.users > 0) return;
    kept.revision.gateway[Symbol.asyncDispose]().then(kept.closed.resolve, kept.closed.reject);
  }
}

function keep(revision: ConfigRevision): Kept {
  return { revision, users: 0, closed: Promise.withResolvers<void>() };
}
