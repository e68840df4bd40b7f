import type { Gateway } from '../../gateway/gateway.ts';
import type { Config } from '../../suite/config-file.ts';
import type { HostEnvironment } from '../../trial/host-environment.ts';

/** One reading of the configuration, with what was made from it. */
export interface Generation {
  config: Config;
  gateway: Gateway;
  host: HostEnvironment;
  concurrency: number;
}

interface Kept {
  generation: Generation;
  users: number;
  closed: PromiseWithResolvers<void>;
}

/**
 * The configuration in force, and those before it that some trial still goes by. A gateway is closed when another configuration has
 * taken its place and its last trial has ended.
 */
export class Generations implements AsyncDisposable {
  #kept: Kept;
  readonly #closing = new Set<Promise<void>>();

  constructor(first: Generation) {
    this.#kept = keep(first);
  }

  get current(): Generation {
    return this.#kept.generation;
  }

  /** The one in force, and what keeps its gateway open until it is disposed of. */
  use(): { generation: Generation; use: Disposable } {
    const kept = this.#kept;
    kept.users++;
    const end = () => {
      kept.users--;
      this.#closeIfOver(kept);
    };
    return { generation: kept.generation, use: { [Symbol.dispose]: end } };
  }

  /** Goes by another one from now on. */
  replace(generation: Generation): void {
    const before = this.#kept;
    this.#kept = keep(generation);
    const closing = before.closed.promise.finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
    this.#closeIfOver(before);
  }

  /** Closes all gateways, after their last trials. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#closing);
    await this.#kept.generation.gateway[Symbol.asyncDispose]();
  }

  #closeIfOver(kept: Kept): void {
    if (kept === this.#kept || kept.users > 0) return;
    kept.generation.gateway[Symbol.asyncDispose]().then(kept.closed.resolve, kept.closed.reject);
  }
}

function keep(generation: Generation): Kept {
  return { generation, users: 0, closed: Promise.withResolvers<void>() };
}
