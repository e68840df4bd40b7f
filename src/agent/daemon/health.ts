import type { Clock } from '../../base/clock.ts';
import { startDeadline } from '../../base/deadline.ts';
import { messageOf } from '../../base/offsite-error.ts';
import { serviceAnswers } from '../../bounds/service.ts';
import type { Client } from '../../client/client.ts';
import { Forbidden, Unauthorized } from '../../client/refusal.ts';
import type { Engine } from '../../engine/engine.ts';
import { enginesOf, type SomeEngines } from '../engines/check.ts';
import type { Watchdog } from '../loop.ts';
import type { Metrics } from './metrics.ts';
import type { Health } from './status.ts';

/** Milliseconds. The service is asked less often, because an idle daemon should make few requests. */
const everyMs = 5_000;
const serviceEveryMs = 30_000;
const engineDeadlineMs = 10_000;

export interface HealthParts extends SomeEngines {
  client: Client;
  clock: Clock;
  watchdog: Watchdog;
  metrics: Metrics;
  /** Called whenever a check finds something else than the one before. */
  changed(health: Health): void;
  /** Notifies the service manager that this process's loops are alive. */
  alive(): Promise<void>;
}

type Finding = { ok: true } | { ok: false; reason: string; isRefused?: boolean };

const unasked: Finding = { ok: false, reason: 'it has not answered yet' };

/** Checks repeatedly whether the daemon's engine, service and loops work. */
export class HealthWatch {
  readonly #parts: HealthParts;
  #engines: { name: string; finding: Finding }[] = [];
  #service: Finding = unasked;
  #mayClaim = false;
  #askedServiceAt = Number.NEGATIVE_INFINITY;
  #reported = '';

  constructor(parts: HealthParts) {
    this.#parts = parts;
  }

  /** Makes the next check ask the service: something else could not reach it. */
  suspectService(): void {
    this.#askedServiceAt = Number.NEGATIVE_INFINITY;
  }

  /** One check. Resolves with the milliseconds until the next one. */
  async look(signal: AbortSignal): Promise<number> {
    const { watchdog, clock, alive, changed } = this.#parts;
    const away = (this.#parts.lateEngines?.away ?? []).map(({ name }) => ({
      name: `the engine ${name}`,
      finding: { ok: false, reason: 'it has not answered since the start' } as const,
    }));
    const connected = await Promise.all(
      enginesOf(this.#parts).map((engine) => this.#askEngine(engine, signal)),
    );
    this.#engines = [...connected, ...away];
    if (!this.#service.ok || clock.monotonic() - this.#askedServiceAt >= serviceEveryMs) {
      this.#askedServiceAt = clock.monotonic();
      this.#service = await this.#askService(signal);
    }
    const { health } = this;
    const reported = health.troubles.join('\n');
    if (reported !== this.#reported) changed(health);
    this.#reported = reported;
    // A new process cures a stuck loop, but not an engine or a service that is down.
    if (watchdog.stuck().length === 0) await alive();
    return everyMs;
  }

  /** Whether the service was asked by now. */
  get isAsked(): boolean {
    return this.#service !== unasked;
  }

  /** Why the service refuses the key, or claims with it. */
  get refusal(): string | undefined {
    return !this.#service.ok && this.#service.isRefused ? this.#service.reason : undefined;
  }

  get health(): Health {
    const stuck = this.#parts.watchdog.stuck().map((name) => `the loop ${name} is stuck`);
    const down = [
      ...this.#engines.flatMap(({ name, finding }) => (finding.ok ? [] : [`${name}: ${finding.reason}`])),
      ...(this.#service.ok ? [] : [`the service: ${this.#service.reason}`]),
    ];
    return { ok: stuck.length + down.length === 0, troubles: [...down, ...stuck] };
  }

  async #askEngine(engine: Engine, signal: AbortSignal): Promise<{ name: string; finding: Finding }> {
    const name = engine.name === undefined ? 'the engine' : `the engine ${engine.name}`;
    const finding = await this.#ask('engine', signal, async () => {
      using deadline = startDeadline(this.#parts.clock, engineDeadlineMs, signal);
      // Any image name would do: only an answer counts.
      await engine.findImage('offsite/base', deadline.signal);
    });
    return { name, finding };
  }

  #askService(signal: AbortSignal): Promise<Finding> {
    const asking = { signal, deadlineMs: serviceAnswers.time.health };
    return this.#ask('service', signal, async () => {
      const { client } = this.#parts;
      await client.call('auth.whoami', {}, asking);
      // No documentation says which permission a claim needs, so only an attempt shows it. Zero seconds give
      // back a claim, and there is none of this run.
      const nothing = { id: 'none', ordinal: 0, agent: 'health', seconds: 0 };
      if (!this.#mayClaim) await client.call('evals.claimTrial', nothing, asking).catch(unlessForbidden);
      this.#mayClaim = true;
    });
  }

  async #ask(
    what: 'engine' | 'service',
    signal: AbortSignal,
    answer: () => Promise<unknown>,
  ): Promise<Finding> {
    try {
      await answer();
      return { ok: true };
    } catch (error) {
      signal.throwIfAborted();
      this.#parts.metrics.errors.inc({ of: what });
      if (error instanceof Unauthorized || error instanceof Forbidden)
        return { ok: false, reason: keyRefused(error), isRefused: true };
      return { ok: false, reason: messageOf(error) };
    }
  }
}

/** What the daemon's owner has to do, once; polls only say that the key is refused. */
function keyRefused(error: Unauthorized | Forbidden): string {
  const what = error instanceof Unauthorized ? 'it refuses the key' : `the key may not ${error.operation}`;
  const remedy = '`offsite service keys create --for daemon` makes one, on the machine of `offsite serve`';
  return `${what} (${error.said.replace(/\.$/, '')}): restart with another key; ${remedy}`;
}

/** Any other answer, such as that there is no such run, shows that the key may ask. */
function unlessForbidden(error: unknown): void {
  if (error instanceof Forbidden) throw error;
}
