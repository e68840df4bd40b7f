import { randomUUID } from 'node:crypto';
import { dirname } from 'node:path';
import { runners } from '../../runners/index.ts';
import { type Claims, ServiceClaims } from '../agent/claims.ts';
import type { ConfigRevision } from '../agent/config-revision.ts';
import { Delivery } from '../agent/delivery.ts';
import { enginesOf, type SomeEngines } from '../agent/engines/check.ts';
import { LateEngines } from '../agent/engines/late-engines.ts';
import { roomOf } from '../agent/trial-size.ts';
import type { Client } from '../client/client.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { Engine } from '../engine/engine.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { GatewayOptions } from '../gateway/gateway-parts.ts';
import type { LimitStore, ModelLimits } from '../gateway/limits/model-limits.ts';
import type { Runner } from '../harness/runner.ts';
import { Ledger } from '../ledger/ledger.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import { Redactor } from '../redaction/redactor.ts';
import type { Platform } from '../service/platform.ts';
import { type Config, loadConfig, SandboxConfig } from '../suite/config-file.ts';
import { defaultBudgetsText } from '../suite/default-budgets.ts';
import { type ConfiguredEngine, configuredEngines } from '../suite/engines-config.ts';
import { BadFile } from '../suite/file-issues.ts';
import { formIssues } from '../suite/read-suite.ts';
import { type HostEnvironment, hostEnvironmentOf } from '../trial/host-environment.ts';
import { dataFolderOf, requireRoom } from './data-folder.ts';
import { dryRunOf } from './dry-run.ts';
import { hostCertificates } from './host-certificates.ts';
import { type Interruption, type InterruptionOptions, interruption } from './interruption.ts';
import type { ServiceAccess } from './service-access.ts';
import { type CommonOptions, secretsOf } from './settings.ts';
import { sweptText } from './swept-text.ts';
import { openTerminal, type Terminal } from './terminal.ts';

interface ContextParts {
  config: Config;
  env: NodeJS.ProcessEnv;
  dataFolder: string;
  insecureHttp: boolean | undefined;
  clock?: Clock | undefined;
  terminal?: Terminal | undefined;
  /** Knows all configured keys. Made from `config` unless given. */
  redactor?: Redactor | undefined;
  host?: HostEnvironment | undefined;
  untried?: readonly string[] | undefined;
}

interface RevisionOptions {
  config?: Config;
  /** Trials at a time. If not given, from the configuration, else from cores and memory. */
  concurrency?: number | undefined;
  sandboxes?: readonly { cpus: number; memory: number }[];
}

/** An engine that does not answer. */
export interface AwayEngine {
  name: string;
  error: OffsiteError;
  configured: ConfiguredEngine;
}

/** Ledger and service, which suffice to report. */
export interface Reporting {
  ledger: Ledger;
  client: Client;
  delivery: Delivery;
  /** The service's name in the ledger. */
  service: string;
}

/** Everything that trials need, except what depends on the current config revision. */
export interface Workshop extends Reporting, SomeEngines {
  runners: readonly Runner[];
  claims: Claims;
  clock: Clock;
  /** The host's, for install and prepare. */
  extraCertificates: Buffer | undefined;
}

/**
 * What a command works with. Configuration, data folder and terminal exist from the start. Ledger, service,
 * engine and gateway are opened when the command first asks for them, in the same way for all commands.
 * Disposing closes what was opened, in reverse order.
 */
export class CommandContext implements AsyncDisposable {
  readonly config: Config;
  readonly env: NodeJS.ProcessEnv;
  readonly dataFolder: string;
  readonly clock: Clock;
  readonly runners: readonly Runner[] = runners;
  /** Removes the keys of models and service from everything that is stored, printed and reported. */
  readonly redactor: Redactor;
  /** The variables of this machine's environment that sandboxes may use. */
  readonly host: HostEnvironment;
  readonly out: Terminal['out'];
  readonly err: Terminal['err'];
  /** What a dry run does not try. Empty for a real one. */
  readonly untried: readonly string[];
  /** Tells the user what happens in the background. A command may replace it. */
  note: (message: string) => void;
  /** Accepts platform batches at the embedded service. Set it before the service is opened. */
  platform: Platform | undefined;
  /** The permits for requests to models, if other machines share them. Set it before a gateway is opened. */
  permits: GatewayOptions['permits'];
  readonly #insecureHttp: boolean | undefined;
  readonly #opened = new AsyncDisposableStack();
  readonly #ending = new AbortController();
  #budgetsTold = false;
  #certificates: Promise<Buffer | undefined> | undefined;
  #lateEngines: LateEngines | undefined;
  #ledger: Ledger | undefined;
  #limits: Promise<ModelLimits> | undefined;
  #service: Promise<ServiceAccess> | undefined;

  constructor(parts: ContextParts) {
    const { config, env, dataFolder, insecureHttp, clock, redactor, host, terminal, untried } = parts;
    this.config = config;
    this.env = env;
    this.dataFolder = dataFolder;
    this.clock = clock ?? systemClock;
    this.redactor = redactor ?? new Redactor(secretsOf(config, env));
    this.host = host ?? hostEnvironmentOf(config, env);
    const { out, err } = terminal ?? openTerminal(this.redact);
    this.out = out;
    this.err = err;
    this.note = (message) => err.print(message);
    this.untried = untried ?? [];
    this.#insecureHttp = insecureHttp;
  }

  /**
   * Reads the configuration. Everything else comes from it, the options and this process's environment.
   *
   * @param suite the suite file, if the command reads one: its folder may hold the configuration
   * @param isLocal whether the embedded service takes the place of the configured one
   */
  static open(
    options: CommonOptions & { dryRun?: true | undefined },
    {
      suite,
      isLocal = false,
      clock,
      terminal,
    }: { suite?: string; isLocal?: boolean } & Pick<ContextParts, 'clock' | 'terminal'> = {},
  ): CommandContext {
    const { env } = process;
    const suiteFolder = suite === undefined ? undefined : dirname(suite);
    const config = checkedTogether(() => loadConfig({ named: options.config, suiteFolder, env }), suite);
    const { insecureHttp } = options;
    if (!options.dryRun) {
      const dataFolder = dataFolderOf(options.dataFolder, config, env);
      if (isLocal) {
        const redactor = new Redactor(secretsOf(config, env));
        const host = hostEnvironmentOf(config, env);
        const { OFFSITE_URL: _, ...local } = env;
        const own = { config: { ...config, service: undefined }, env: local, redactor, host };
        return new CommandContext({ ...own, dataFolder, insecureHttp, clock, terminal });
      }
      return new CommandContext({ config, env, dataFolder, insecureHttp, clock, terminal });
    }
    const dryRun = dryRunOf(config, env);
    // The redactor knows all keys, including those that a dry run does not use.
    const redactor = new Redactor(secretsOf(config, env));
    const host = hostEnvironmentOf(config, env);
    const context = new CommandContext({ ...dryRun, insecureHttp, clock, terminal, redactor, host });
    context.#opened.use(dryRun);
    return context;
  }

  readonly redact = (text: string): string => this.redactor.text(text);

  /**
   * Makes the first SIGINT or SIGTERM abort a signal. Call it before anything is opened, so that its handlers
   * stay until everything is closed.
   */
  interruption(options?: InterruptionOptions): Interruption {
    const interrupted = this.#opened.use(interruption((message) => this.note(message), options));
    interrupted.signal.addEventListener('abort', () => this.end(), { once: true });
    return interrupted;
  }

  /** The command ends, and waits no longer than it must. Disposing does the same. */
  end(): void {
    this.#ending.abort();
  }

  ledger(): Ledger {
    this.#ledger ??= this.#opened.use(new Ledger(this.dataFolder, this.clock, { redactor: this.redactor }));
    return this.#ledger;
  }

  /** The configured service, or the embedded one. */
  service(): Promise<ServiceAccess> {
    this.#service ??= this.#openService();
    return this.#service;
  }

  async #openService(): Promise<ServiceAccess> {
    const { config, dataFolder, env, clock, host } = this;
    const { accessService, integrationsOf } = await import('./service-access.ts');
    const access = await accessService({
      ...{ config, dataFolder, env, clock, host },
      caBundle: await this.certificates(),
      integrations: integrationsOf(this.runners),
      insecureHttp: this.#insecureHttp,
      platform: this.platform,
      note: (message) => this.note(message),
    });
    return this.#opened.use(access);
  }

  /** Connects to the engine; of several, to the first. Call it once. Throws `ENGINE_UNREACHABLE`. */
  async engine(signal: AbortSignal): Promise<Engine> {
    const [first] = configuredEngines(this.config);
    return this.#opened.use(await this.#connect(first, signal));
  }

  /**
   * Connects to all configured engines. Those that do not answer are told, and left out. Call it once. Throws
   * `ENGINE_UNREACHABLE` if none answers.
   */
  async engines(signal: AbortSignal): Promise<SomeEngines & { away: AwayEngine[] }> {
    const all = configuredEngines(this.config);
    if (all.length === 0) return { engine: await this.engine(signal), away: [] };
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
    // A wrong setting is to be corrected, even if the others work.
    const wrong = away.find(({ error }) => error.kind === 'input') ?? (engine ? undefined : away[0]);
    if (wrong || !engine) {
      for (const one of connected) await one.engine?.[Symbol.asyncDispose]();
      throw wrong?.error ?? new Error('no engine is configured');
    }
    for (const one of [engine, ...moreEngines]) this.#opened.defer(() => this.#close(one));
    return { engine, moreEngines, away };
  }

  /** Closes one of several engines. One that is away keeps no result of the others from being told. */
  async #close(engine: Engine): Promise<void> {
    try {
      await engine[Symbol.asyncDispose]();
    } catch (error) {
      if (!(error instanceof OffsiteError) || error.kind !== 'infrastructure') throw error;
      const later = 'the next command that uses it does that';
      this.note(`cannot remove this agent's containers from the engine ${engine.name}; ${later}`);
    }
  }

  async #connect(configured: ConfiguredEngine | undefined, signal: AbortSignal): Promise<Engine> {
    const { config, env, clock } = this;
    const { connectEngine } = await import('../engine/connect.ts');
    const { name, host, certificates, trials, labels } = configured ?? {
      host: config.engine?.host,
      labels: config.labels,
    };
    return connectEngine({
      ...{ name, host, certificates, trials, labels },
      instance: randomUUID(),
      ...{ env, signal, clock },
      ending: this.#ending.signal,
      note: (message) => this.note(name === undefined ? message : `${name}: ${message}`),
      pull: config.pull,
      snapshots: { budgetBytes: config.snapshots.budget },
    });
  }

  /**
   * Opens a gateway to the configured models. The caller closes it.
   *
   * @param limits those that other processes share, if trials ask through it
   */
  async gateway(
    { models }: Pick<Config, 'models'> = this.config,
    limits?: GatewayOptions['limits'],
  ): Promise<Gateway> {
    const { openGateway } = await import('../gateway/open-gateway.ts');
    return openGateway({ ...(await this.gatewayOptions(models)), limits });
  }

  async gatewayOptions(models: Config['models'] = this.config.models): Promise<GatewayOptions> {
    const { env, clock, permits } = this;
    const caBundle = await this.certificates();
    const { scriptedUpstream } = await import('../gateway/scripted/scripted-upstream.ts');
    const scripted = (file: string) => scriptedUpstream(file, clock);
    const { readCassette } = await import('../gateway/replay/read-cassette.ts');
    const cassette = onceFor(readCassette);
    const note = (message: string) => this.note(message);
    return { models, env, clock, caBundle, scripted, cassette, permits, note };
  }

  /** The certificates, as PEM, that this host trusts in addition to the public authorities. */
  certificates(): Promise<Buffer | undefined> {
    this.#certificates ??= hostCertificates(this.config, this.env).then((bundle) => bundle?.pem);
    return this.#certificates;
  }

  /**
   * A config revision: a configuration with what trials need from it. The caller closes its gateway.
   *
   * @param sandboxes the sandboxes that trials use; if not given, all that are configured
   */
  async revision(
    engines: SomeEngines,
    { config = this.config, concurrency, sandboxes }: RevisionOptions,
  ): Promise<ConfigRevision> {
    const limits = this.#budgetsTold ? undefined : defaultBudgetsText(config.budgets);
    this.#budgetsTold = true;
    if (limits !== undefined && config === this.config && this.untried.length === 0) this.note(limits);
    const set = concurrency ?? config.concurrency;
    const possible = sandboxes ?? [SandboxConfig.parse({}), ...Object.values(config.sandboxes)];
    return {
      config,
      gateway: await this.gateway(config, await this.#sharedLimits()),
      // A dry run refuses the keys of the real configuration too.
      host: config === this.config ? this.host : hostEnvironmentOf(config, this.env),
      // Engines that were away at the start may join.
      get concurrency() {
        return set ?? concurrencyOn(engines, possible);
      },
      trialsOn: (engine) => (set === undefined ? trialsOn(engine, possible) : 0),
    };
  }

  /** The limits of models that adapt, shared by the processes of the data folder. */
  #sharedLimits(): Promise<ModelLimits> {
    this.#limits ??= this.#openLimits();
    return this.#limits;
  }

  async #openLimits(): Promise<ModelLimits> {
    const { ModelLimits } = await import('../gateway/limits/model-limits.ts');
    // The ledger is opened only if the limit of a model adapts.
    const store: LimitStore = {
      change: (...change) => this.ledger().limits.change(...change),
      moved: (...moved) => this.ledger().limits.moved(...moved),
    };
    return this.#opened.use(new ModelLimits(this.clock, store, (message) => this.note(message)));
  }

  async reporting(): Promise<Reporting> {
    const ledger = this.ledger();
    const { client, name: service } = await this.service();
    const warn = (message: string) => this.note(message);
    return {
      ledger,
      client,
      service,
      delivery: new Delivery({ client, outbox: ledger.outbox, clock: this.clock, warn }),
    };
  }

  /** Connects to the engines for trials, and removes from them what killed processes left. Call it once. */
  async enginesForTrials(signal: AbortSignal): Promise<SomeEngines> {
    requireRoom(this.dataFolder);
    const { away, ...engines } = await this.engines(signal);
    const sweep = (engine: Engine) => {
      // The sweep takes seconds, and no trial waits for it.
      const sweeping = this.#sweep(engine, signal);
      this.#opened.defer(() => sweeping);
    };
    for (const engine of enginesOf(engines)) sweep(engine);
    if (away.length === 0) return engines;
    for (const { name, error } of away) {
      const meanwhile = 'Trials run on the others until it answers';
      this.note(`the engine ${name} does not answer: ${messageOf(error)}\n  ${meanwhile}.`);
    }
    this.#lateEngines = new LateEngines({
      late: away.map(({ name, configured }) => ({
        ...{ name, trials: configured.trials, address: configured.host ?? 'local' },
        connect: (signal: AbortSignal) => this.#connect(configured, signal),
      })),
      clock: this.clock,
      random: Math.random,
      joins: (engine) => {
        this.#opened.defer(() => this.#close(engine));
        sweep(engine);
        this.note(`the engine ${engine.name} answers now, and trials run there too`);
      },
      refused: (name, error) => this.note(`the engine ${name} is left out: ${messageOf(error)}`),
    });
    return { ...engines, lateEngines: this.#lateEngines };
  }

  /** Opens what trials need. */
  async workshop(signal: AbortSignal): Promise<Workshop> {
    const engines = await this.enginesForTrials(signal);
    const reporting = await this.reporting();
    const { clock } = this;
    const { client, ledger } = reporting;
    const claims = new ServiceClaims({
      ...{ client, clock },
      agent: ledger.agentId,
      monotonic: () => performance.now(),
      leaseMs: this.config.lease,
    });
    return {
      ...reporting,
      ...engines,
      runners: this.runners,
      claims: this.#opened.use(claims),
      clock,
      extraCertificates: await this.certificates(),
    };
  }

  /** Never rejects. */
  async #sweep(engine: Engine, signal: AbortSignal): Promise<void> {
    const on = engine.name === undefined ? 'the engine' : `the engine ${engine.name}`;
    try {
      const { removed } = await engine.sweep(signal);
      const told = sweptText(removed, on);
      if (told !== undefined) this.note(told);
    } catch (error) {
      if (!signal.aborted)
        this.note(`cannot remove from ${on} what killed Offsite processes left: ${messageOf(error)}`);
    }
  }

  /** Disposes one of the command's own parts together with the others. */
  closeWith(part: Disposable | AsyncDisposable): void {
    this.#opened.use(part);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // First, because an engine that joins is to be closed with the others.
    await this.#lateEngines?.[Symbol.asyncDispose]();
    await this.#opened.disposeAsync();
  }
}

/** Reads the configuration. If it has problems, those in the form of the suite are told with them. */
function checkedTogether(read: () => Config, suite: string | undefined): Config {
  try {
    return read();
  } catch (error) {
    if (suite === undefined || !(error instanceof BadFile)) throw error;
    throw new BadFile([...error.issues, ...formIssues(suite)]);
  }
}

/** Calls a function once for each argument. */
function onceFor<Result>(read: (name: string) => Result): (name: string) => Result {
  const known = new Map<string, Result>();
  return (name) => {
    const result = known.get(name) ?? read(name);
    known.set(name, result);
    return result;
  };
}

/**
 * Trials at a time that cores and memory of the engine's machine allow, for the largest of the sandboxes. At
 * least one.
 */
export function concurrencyFor(
  { capabilities }: Engine,
  sandboxes: readonly { cpus: number; memory: number }[],
): number {
  const cpus = Math.max(...sandboxes.map((sandbox) => sandbox.cpus));
  const memory = Math.max(...sandboxes.map((sandbox) => sandbox.memory));
  const byCores = Math.floor(capabilities.cpus / cpus);
  const byMemory = Math.floor(roomOf(capabilities).memory / memory);
  return Math.max(1, Math.min(byCores, byMemory));
}

/** The same for several engines together, some of which may have a limit of trials. */
function concurrencyOn(engines: SomeEngines, sandboxes: readonly { cpus: number; memory: number }[]): number {
  return enginesOf(engines).reduce((sum, engine) => sum + trialsOn(engine, sandboxes), 0);
}

function trialsOn(engine: Engine, sandboxes: readonly { cpus: number; memory: number }[]): number {
  return engine.trials ?? concurrencyFor(engine, sandboxes);
}
