import { dirname } from 'node:path';
import { runners } from '../../runners/index.ts';
import { type Claims, ServiceClaims } from '../agent/claims.ts';
import type { ConfigRevision } from '../agent/config-revision.ts';
import { concurrencyOn, type SomeEngines, trialsOn } from '../agent/engines/check.ts';
import { type Sender, ServiceSender } from '../agent/sender.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import type { Client } from '../client/client.ts';
import type { Runner } from '../harness/runner.ts';
import { isDataFolder, requireDataFolder } from '../ledger/data-folder.ts';
import { Ledger } from '../ledger/ledger.ts';
import { Redactor } from '../redaction/redactor.ts';
import type { Platform } from '../service/platform.ts';
import { type Config, defaultBudgetsText } from '../suite/config-file.ts';
import { loadConfig } from '../suite/load-config.ts';
import { SandboxConfig } from '../suite/sandbox-config.ts';
import { secretsOf } from '../trial/prepare/credentials.ts';
import { type HostEnvironment, hostEnvironmentOf } from '../trial/prepare/environment.ts';
import { dataFolderOf, requireRoom } from './data-folder.ts';
import { dryRunOf } from './dry-run.ts';
import { ContextEngines } from './engines.ts';
import { hostCertificates } from './host-certificates.ts';
import { ContextModels } from './models.ts';
import type { ServiceAccess } from './service-access.ts';

/** Where the configuration and the data folder are, as a person says it. */
export interface PlaceOptions {
  config?: string | undefined;
  dataFolder?: string | undefined;
  insecureHttp?: true | undefined;
  dryRun?: true | undefined;
}

export interface ContextParts {
  config: Config;
  configured?: Config['models'] | undefined;
  env: NodeJS.ProcessEnv;
  dataFolder: string;
  insecureHttp: boolean | undefined;
  clock?: Clock | undefined;
  /** Knows all configured keys. Made from `config` unless given. */
  redactor?: Redactor | undefined;
  host?: HostEnvironment | undefined;
  untried?: readonly string[] | undefined;
  /**
   * Whether a data folder that does not exist is made. A command that only reads refuses it: success over a
   * new folder would hide a wrong name.
   */
  creates?: boolean | undefined;
  /** Disposed with the context, after everything that it opened. */
  closes?: Disposable | undefined;
}

interface RevisionOptions {
  config?: Config;
  /** Trials at a time. If not given, from the configuration, else from cores and memory. */
  concurrency?: number | undefined;
  sandboxes?: readonly { cpus: number; memory: number }[];
}

/** Ledger and service, which suffice to report. */
export interface Reporting {
  ledger: Ledger;
  client: Client;
  clock: Clock;
  sender: Sender;
  /** The service's name in the ledger. */
  service: string;
}

/** Everything that trials need, except what depends on the current config revision. */
export interface Workshop extends Reporting, SomeEngines {
  runners: readonly Runner[];
  claims: Claims;
  clock: Clock;
  /** The host's additional certificates, for install and prepare. */
  extraCertificates: Buffer | undefined;
}

/**
 * What a command or another program works with. Configuration and data folder exist from the start. Ledger,
 * service, engine and gateway are opened when they are first asked for. Needs no terminal. Disposing closes
 * what was opened, in reverse order.
 */
export class Context implements AsyncDisposable {
  readonly config: Config;
  /** The models that the user configured. A dry run has others. */
  readonly configured: Config['models'];
  readonly env: NodeJS.ProcessEnv;
  readonly dataFolder: string;
  readonly clock: Clock;
  readonly runners: readonly Runner[] = runners;
  /** Removes the keys of models and service from everything that is stored, printed and reported. */
  readonly redactor: Redactor;
  /** The variables of this machine's environment that sandboxes may use. */
  readonly host: HostEnvironment;
  /** What a dry run does not try. Empty if this is no dry run. */
  readonly untried: readonly string[];
  /** Informs the user of what happens in the background. Whoever shows it replaces it. */
  note: (message: string) => void = () => undefined;
  /** Accepts platform batches at the embedded service. Set it before the service is opened. */
  platform: Platform | undefined;
  readonly engines: ContextEngines;
  readonly models: ContextModels;
  readonly #creates: boolean;
  readonly #insecureHttp: boolean | undefined;
  readonly #opened = new AsyncDisposableStack();
  readonly #ending = new AbortController();
  #hasPrintedBudgets = false;
  #certificates: Promise<Buffer | undefined> | undefined;
  #ledger: Ledger | undefined;
  #service: Promise<ServiceAccess> | undefined;

  constructor(given: ContextParts) {
    const { config, env, dataFolder, insecureHttp, clock, redactor, host, untried, creates, closes } = given;
    this.config = config;
    this.configured = given.configured ?? config.models;
    this.env = env;
    this.dataFolder = dataFolder;
    this.clock = clock ?? systemClock;
    this.redactor = redactor ?? new Redactor(secretsOf(config, env));
    this.host = host ?? hostEnvironmentOf(config, env);
    this.untried = untried ?? [];
    this.#creates = creates ?? false;
    this.#insecureHttp = insecureHttp;
    this.#opened.use(closes);
    const parts = {
      config,
      env,
      dataFolder,
      clock: this.clock,
      note: (message: string) => this.note(message),
      closeWith: (part: Disposable | AsyncDisposable) => this.closeWith(part),
    };
    this.models = new ContextModels({
      ...parts,
      certificates: () => this.certificates(),
    });
    this.engines = new ContextEngines({ ...parts, ending: this.#ending.signal });
  }

  readonly redact = (text: string): string => this.redactor.text(text);

  /** The work ends, and waits no longer than it must. Disposing does the same. */
  end(): void {
    this.#ending.abort();
  }

  /** @param isChecked as of {@link Ledger} */
  ledger({ isChecked = true, creates = this.#creates } = {}): Ledger {
    const { redactor } = this;
    if (!creates) requireDataFolder(this.dataFolder);
    this.#ledger ??= this.#opened.use(new Ledger(this.dataFolder, this.clock, { redactor, isChecked }));
    return this.#ledger;
  }

  /** The ledger, for a command that asks a service and reads it besides. Undefined if there is none. */
  ledgerIfAny(): Ledger | undefined {
    return isDataFolder(this.dataFolder) ? this.ledger() : undefined;
  }

  /** The configured service, or the embedded one. */
  service(): Promise<ServiceAccess> {
    this.#service ??= this.#openService();
    return this.#service;
  }

  async #openService(): Promise<ServiceAccess> {
    const { config, dataFolder, env, clock, host } = this;
    const { accessService, integrationsOf } = await import('../api/service-access.ts');
    const access = await accessService({
      config,
      dataFolder,
      env,
      clock,
      host,
      caBundle: await this.certificates(),
      integrations: integrationsOf(this.runners),
      insecureHttp: this.#insecureHttp,
      platform: this.platform,
      creates: this.#creates,
      note: (message) => this.note(message),
    });
    return this.#opened.use(access);
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
    const set = concurrency ?? config.concurrency;
    const possible = sandboxes ?? [SandboxConfig.parse({}), ...Object.values(config.sandboxes)];
    return {
      config,
      gateway: await this.models.gateway(config.models, await this.models.sharedLimits()),
      // A dry run refuses the keys of the real configuration too.
      host: config === this.config ? this.host : hostEnvironmentOf(config, this.env),
      // Engines that were away at the start may join.
      get concurrency() {
        return set ?? concurrencyOn(engines, possible);
      },
      trialsOn: (engine) => (set === undefined ? trialsOn(engine, possible) : 0),
    };
  }

  /**
   * Says, once, which limits hold that nobody set. Call it when trials begin: before an error it is noise.
   */
  noteLimits(): void {
    const limits = this.#hasPrintedBudgets ? undefined : defaultBudgetsText(this.config.budgets);
    this.#hasPrintedBudgets = true;
    if (limits !== undefined && this.untried.length === 0) this.note(limits);
  }

  async reporting(): Promise<Reporting> {
    const ledger = this.ledger();
    const { client, name: service } = await this.service();
    const warn = (message: string) => this.note(message);
    const sender = new ServiceSender({ client, ledger, warn });
    return { ledger, client, clock: this.clock, service, sender };
  }

  /** The engines for trials, once there is room for results. Call it once. */
  enginesForTrials(signal: AbortSignal): Promise<SomeEngines> {
    requireRoom(this.dataFolder);
    return this.engines.forTrials(signal);
  }

  /** Opens what trials need. */
  async workshop(signal: AbortSignal): Promise<Workshop> {
    // The engines need time to answer. If one of the two fails, the other must not go on by itself.
    const opening = [this.enginesForTrials(signal), this.reporting()] as const;
    await Promise.allSettled(opening);
    const [engines, reporting] = await Promise.all(opening);
    const { clock } = this;
    const { client, ledger } = reporting;
    const leaseMs = this.config.lease;
    const claims = new ServiceClaims({ client, clock, agent: ledger.agentId, leaseMs });
    return {
      ...reporting,
      ...engines,
      runners: this.runners,
      claims: this.#opened.use(claims),
      clock,
      extraCertificates: await this.certificates(),
    };
  }

  /** Disposes one of the caller's own parts together with the others. */
  closeWith(part: Disposable | AsyncDisposable): void {
    this.#opened.use(part);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }
}

/**
 * Reads the configuration. Everything else comes from it, the options and the environment.
 *
 * @param suite the suite file, if one is read: its folder may hold the configuration
 * @param isLocal whether the embedded service takes the place of the configured one
 */
export function contextParts(
  options: PlaceOptions,
  {
    env,
    suite,
    isLocal = false,
    creates,
  }: {
    env: NodeJS.ProcessEnv;
    suite?: string | undefined;
    isLocal?: boolean;
    creates?: boolean | undefined;
  },
): ContextParts {
  const suiteFolder = suite === undefined ? undefined : dirname(suite);
  const config = loadConfig({ named: options.config, suiteFolder, env });
  const { insecureHttp } = options;
  // They know all keys, including those that a dry run or the embedded service does not use.
  const redactor = new Redactor(secretsOf(config, env));
  const host = hostEnvironmentOf(config, env);
  const known = { insecureHttp, redactor, host, creates };
  if (options.dryRun) {
    const dryRun = dryRunOf(config, env);
    return { ...known, ...dryRun, configured: config.models, closes: dryRun };
  }
  const dataFolder = dataFolderOf(options.dataFolder, config, env);
  const { OFFSITE_URL: _, ...local } = env;
  if (isLocal) return { ...known, dataFolder, env: local, config: { ...config, service: undefined } };
  return { ...known, dataFolder, env, config };
}
