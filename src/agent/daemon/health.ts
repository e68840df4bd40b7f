import { serviceAnswers } from '../../bounds/service.ts';
import type { Client } from '../../client/client.ts';
import type { Clock } from '../../clock.ts';
import { startDeadline } from '../../engine/deadline.ts';
import type { Engine } from '../../engine/engine.ts';
import { messageOf } from '../../offsite-error.ts';
import type { Watchdog } from '../loop.ts';
import type { Metrics } from './metrics.ts';
import type { Health } from './status.ts';

/** Milliseconds. The service is asked less often: the request is one of those that an idle daemon makes. */
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
  /** Told of every look whose finding differs from the one before. */
  changed(health: Health): void;
  /** Tells whoever watches this process that its loops go round. */
  alive(): Promise<void>;
}

type Finding = { ok: true } | { ok: false; reason: string };

/**
 * Whether what the daemon depends on works: engine and service are asked again and again, the loops watched.
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

  /** One look. Resolves with the milliseconds until the next. */
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
    // Of a stuck loop a new process is the cure; of an engine or service that is down it is not.
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
        // Any image would do: what counts is an answer.
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
