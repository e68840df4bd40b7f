import { serviceAnswers } from '../../bounds/service.ts';
import type { Client } from '../../client/client.ts';
import type { Clock } from '../../clock.ts';
import { startDeadline } from '../../deadline.ts';
import type { Engine } from '../../engine/engine.ts';
import { messageOf } from '../../offsite-error.ts';
import type { Watchdog } from '../loop.ts';
import type { Metrics } from './metrics.ts';
import type { Health } from './status.ts';

/** Milliseconds. The service is asked less often, because an idle daemon should make few requests. */
const everyMs = 5_000;
const serviceEveryMs = 30_000;
const engineDeadlineMs = 10_000;

export interface HealthParts {
  engine: Engine;
  client: Client;
  clock: Clock;
  /** Milliseconds, never set back. */
  monotonic: () => number;
  watchdog: Watchdog;
  metrics: Metrics;
  /** Called whenever a check finds something else than the one before. */
  changed(health: Health): void;
  /** Tells the service manager that this process's loops are alive. */
  alive(): Promise<void>;
}

type Finding = { ok: true } | { ok: false; reason: string };

/**
 * Checks repeatedly whether the daemon's engine, service and loops work.
 */
export class HealthWatch {
  readonly #parts: HealthParts;
  #engine: Finding = { ok: true };
  #service: Finding = { ok: true };
  #askedServiceAt = Number.NEGATIVE_INFINITY;
  #told = '';

  constructor(parts: HealthParts) {
    this.#parts = parts;
  }

  /** One check. Resolves with the milliseconds until the next one. */
  async look(signal: AbortSignal): Promise<number> {
    const { watchdog, monotonic, alive, changed } = this.#parts;
    this.#engine = await this.#ask('engine', signal);
    if (!this.#service.ok || monotonic() - this.#askedServiceAt >= serviceEveryMs) {
      this.#askedServiceAt = monotonic();
      this.#service = await this.#ask('service', signal);
    }
    const { health } = this;
    const told = health.troubles.join('\n');
    if (told !== this.#told) changed(health);
    this.#told = told;
    // A new process cures a stuck loop, but not an engine or a service that is down.
    if (watchdog.stuck().length === 0) await alive();
    return everyMs;
  }

  get health(): Health {
    const stuck = this.#parts.watchdog.stuck().map((name) => `the loop ${name} is stuck`);
    const down = [
      ...(this.#engine.ok ? [] : [`the engine: ${this.#engine.reason}`]),
      ...(this.#service.ok ? [] : [`the service: ${this.#service.reason}`]),
    ];
    return { ok: stuck.length + down.length === 0, troubles: [...down, ...stuck] };
  }

  async #ask(what: 'engine' | 'service', signal: AbortSignal): Promise<Finding> {
    const { engine, client, clock, metrics } = this.#parts;
    try {
      if (what === 'engine') {
        using deadline = startDeadline(clock, engineDeadlineMs, signal);
        // Any image name would do: only an answer counts.
        await engine.findImage('offsite/base', deadline.signal);
      } else {
        await client.call('auth.whoami', {}, { signal, deadlineMs: serviceAnswers.time.health });
      }
      return { ok: true };
    } catch (error) {
      signal.throwIfAborted();
      metrics.errors.inc({ of: what });
      return { ok: false, reason: messageOf(error) };
    }
  }
}
