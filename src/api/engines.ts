import { randomUUID } from 'node:crypto';
import { enginesOf, LateEngines, type SomeEngines } from '../agent/engines/check.ts';
import type { Clock } from '../base/clock.ts';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import type { Engine } from '../engine/engine.ts';
import type { Config } from '../suite/config-file.ts';
import { type ConfiguredEngine, configuredEngines } from '../suite/engines-config.ts';
import { stuckText, sweptText } from './swept-text.ts';

/** An engine that does not answer. */
export interface AwayEngine {
  name: string;
  error: OffsiteError;
  configured: ConfiguredEngine;
}

interface ContextEnginesOptions {
  config: Config;
  env: NodeJS.ProcessEnv;
  clock: Clock;
  /** Aborts when the command ends. Waits for engines end then. */
  ending: AbortSignal;
  note: (message: string) => void;
  /** Disposes a part when the command ends. */
  closeWith: (part: AsyncDisposable) => void;
}

/**
 * Milliseconds. By then, what a process left that was killed before it had a marker is known to be a dead
 * one's. Images without a name hurry nobody, and a short run need not look for them.
 */
const secondSweepMs = 70_000;

/** The engines of a command. Disposing closes those that were opened, in reverse order. */
export class ContextEngines implements AsyncDisposable {
  readonly #options: ContextEnginesOptions;
  readonly #opened = new AsyncDisposableStack();
  readonly #closing = new AbortController();
  #isToBeClosed = false;
  #closed: Promise<void> | undefined;
  #lateEngines: LateEngines | undefined;

  constructor(options: ContextEnginesOptions) {
    this.#options = options;
  }

  /** Connects to the engine; of several, to the first. Call it once. Throws `ENGINE_UNREACHABLE`. */
  async first(signal: AbortSignal): Promise<Engine> {
    const [first] = configuredEngines(this.#options.config);
    return this.#opened.use(await this.#connect(first, signal));
  }

  /**
   * Connects to all configured engines. Those that do not answer are reported, and left out. Call it once.
   * Throws `ENGINE_UNREACHABLE` if none answers.
   */
  async all(signal: AbortSignal): Promise<SomeEngines & { away: AwayEngine[] }> {
    const all = configuredEngines(this.#options.config);
    if (all.length === 0) return { engine: await this.first(signal), away: [] };
    const connected = await Promise.all(
      all.map(async (one) => {
        const { name } = one;
        try {
          return { name, configured: one, engine: await this.#connect(one, signal) };
        } catch (error) {
          signal.throwIfAborted();
          if (!(error instanceof OffsiteError)) throw error;
          return { name, configured: one, error };
        }
      }),
    );
    const [engine, ...moreEngines] = connected.flatMap((one) => (one.engine ? [one.engine] : []));
    const away = connected.flatMap(({ engine: _, ...one }) => (one.error ? [one] : []));
    // A wrong setting is an error even if the other engines work.
    const wrong = away.find(({ error }) => error.kind === 'input') ?? (engine ? undefined : away[0]);
    if (wrong || !engine) {
      for (const one of connected) await one.engine?.[Symbol.asyncDispose]();
      throw wrong?.error ?? new Error('no engine is configured');
    }
    for (const one of [engine, ...moreEngines]) this.#opened.defer(() => this.#closeOne(one));
    return { engine, moreEngines, away };
  }

  /** Closes one of several engines. If it does not answer, the results of the others are still reported. */
  async #closeOne(engine: Engine): Promise<void> {
    try {
      await engine[Symbol.asyncDispose]();
    } catch (error) {
      if (!(error instanceof OffsiteError) || error.kind !== 'infrastructure') throw error;
      const later = 'the next command that uses it does that';
      this.#options.note(`cannot remove this process's containers from the engine ${engine.name}; ${later}`);
    }
  }

  /** Lets the command close the engines before everything that it opened earlier. */
  #closeWithCommand(): void {
    if (!this.#isToBeClosed) this.#options.closeWith(this);
    this.#isToBeClosed = true;
  }

  async #connect(configured: ConfiguredEngine | undefined, signal: AbortSignal): Promise<Engine> {
    this.#closeWithCommand();
    const { config, env, clock, ending, note } = this.#options;
    const { connectEngine } = await import('../engine/connect.ts');
    const { name, host, certificates, trials, labels } = configured ?? {
      host: config.engine?.host,
      labels: config.labels,
    };
    return connectEngine({
      name,
      host,
      certificates,
      trials,
      labels,
      instance: randomUUID(),
      env,
      signal,
      clock,
      ending,
      note: (message) => note(name === undefined ? message : `${name}: ${message}`),
      pull: config.pull,
      snapshots: { budgetBytes: config.snapshots.budget },
    });
  }

  /** Connects to the engines for trials, and removes from them what killed processes left. Call it once. */
  async forTrials(signal: AbortSignal): Promise<SomeEngines> {
    const { clock, note } = this.#options;
    const { away, ...engines } = await this.all(signal);
    const sweep = (engine: Engine) => {
      // The sweep takes seconds, and no trial waits for it.
      const sweeping = this.#sweepAtStart(engine, signal);
      this.#opened.defer(() => sweeping);
    };
    for (const engine of enginesOf(engines)) sweep(engine);
    if (away.length === 0) return engines;
    for (const { name, error } of away) {
      const meanwhile = 'Trials run on the others until it answers';
      note(`the engine ${name} does not answer: ${messageOf(error)}\n  ${meanwhile}.`);
    }
    this.#lateEngines = new LateEngines({
      late: away.map(({ name, configured }) => ({
        name,
        trials: configured.trials,
        address: configured.host ?? 'local',
        connect: (signal: AbortSignal) => this.#connect(configured, signal),
      })),
      clock: clock,
      random: Math.random,
      joins: (engine) => {
        this.#opened.defer(() => this.#closeOne(engine));
        sweep(engine);
        note(`the engine ${engine.name} answers now, and trials run there too`);
      },
      refused: (name, error) => note(`the engine ${name} is left out: ${messageOf(error)}`),
    });
    return { ...engines, lateEngines: this.#lateEngines };
  }

  /** Never rejects. */
  async #sweepAtStart(engine: Engine, signal: AbortSignal): Promise<void> {
    await this.#sweep(engine, signal, 'left');
    const waiting = AbortSignal.any([signal, this.#closing.signal]);
    const isOver = await this.#options.clock.sleep(secondSweepMs, waiting).then(
      () => false,
      () => true,
    );
    if (!isOver) await this.#sweep(engine, signal);
  }

  /** Never rejects. */
  async #sweep(engine: Engine, signal: AbortSignal, only?: 'left'): Promise<void> {
    const on = engine.name === undefined ? 'the engine' : `the engine ${engine.name}`;
    try {
      const { removed, stuck } = await engine.sweep(signal, { only });
      for (const message of [sweptText(removed, on), stuckText(stuck, on)])
        if (message !== undefined) this.#options.note(message);
    } catch (error) {
      if (!signal.aborted)
        this.#options.note(
          `cannot remove from ${on} what killed Offsite processes left: ${messageOf(error)}`,
        );
    }
  }

  /** Starts to close the engines: no more trials run. Disposing waits for it. */
  beginClosing(): void {
    this.#closed ??= this.#close();
    // Whoever disposes them gets the error.
    this.#closed.catch(() => undefined);
  }

  async #close(): Promise<void> {
    this.#closing.abort();
    // First, so that no further engine joins while the others are closed.
    await this.#lateEngines?.[Symbol.asyncDispose]();
    await this.#opened.disposeAsync();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.beginClosing();
    await this.#closed;
  }
}
