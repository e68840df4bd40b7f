import { randomUUID } from 'node:crypto';
import { Delivery } from '../agent/delivery.ts';
import type { Client } from '../client/client.ts';
import type { Clock } from '../clock.ts';
import { connectEngine } from '../engine/connect.ts';
import type { Engine } from '../engine/engine.ts';
import { openBudget } from '../gateway/budget.ts';
import type { BudgetAccount, Gateway } from '../gateway/gateway.ts';
import { openGateway } from '../gateway/open-gateway.ts';
import { scriptedUpstream } from '../gateway/scripted/scripted-upstream.ts';
import type { Runner } from '../harness/runner.ts';
import { Ledger } from '../ledger/ledger.ts';
import { messageOf } from '../offsite-error.ts';
import type { Redactor } from '../redaction/redactor.ts';
import type { Config } from '../suite/config-file.ts';
import type { Budget } from '../suite/model-config.ts';
import { type HostEnvironment, hostEnvironmentOf } from '../trial/host-environment.ts';
import { requireRoom } from './data-folder.ts';
import { hostCertificates } from './host-certificates.ts';
import { integrationsOf } from './integrations.ts';
import { plural } from './output/quantities.ts';
import { redactorOf } from './redactor.ts';
import { accessService } from './service-access.ts';

/** What a command is given to set itself up with. */
export interface Surroundings {
  config: Config;
  dataFolder: string;
  env: NodeJS.ProcessEnv;
  clock: Clock;
  runners: readonly Runner[];
  insecureHttp: boolean | undefined;
  /** For what is kept; made from the configuration unless given. */
  redactor?: Redactor;
  /** What sandboxes may ask for; made from the configuration unless given. */
  host?: HostEnvironment;
  /** For what the user should know meanwhile. */
  note(message: string): void;
}

/** Ledger and service: enough to report. */
export interface Reporting extends AsyncDisposable {
  ledger: Ledger;
  client: Client;
  delivery: Delivery;
  /** The service's name in the ledger. */
  service: string;
}

export async function openReporting(surroundings: Surroundings): Promise<Reporting> {
  const { config, dataFolder, env, clock, note, runners } = surroundings;
  const { redactor = redactorOf(config, env) } = surroundings;
  await using opened = new AsyncDisposableStack();
  const ledger = opened.use(new Ledger(dataFolder, clock, { redactor }));
  const access = opened.use(
    await accessService({
      ...surroundings,
      caBundle: (await hostCertificates(config, env))?.pem,
      integrations: integrationsOf(runners),
    }),
  );
  const delivery = new Delivery({ client: access.client, outbox: ledger.outbox, clock, warn: note });
  const kept = opened.move();
  return {
    ledger,
    client: access.client,
    delivery,
    service: access.name,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** All that trials need but what depends on the configuration of the moment: ledger, service, engine. */
export interface Workshop extends Reporting {
  engine: Engine;
  runners: readonly Runner[];
  clock: Clock;
  extraCertificates: Buffer | undefined;
}

/** All that the trials of a batch need. */
export interface Workplace extends Workshop {
  gateway: Gateway;
  /** What sandboxes may ask for of this machine's environment. */
  host: HostEnvironment;
  /** One batch's: what is spent counts from now. */
  budgets: { trial: Budget; judges?: Budget | undefined; batch: BudgetAccount };
}

/** Opens what trials need, and removes from the engine what agents that died have left. */
export async function openWorkshop(surroundings: Surroundings, signal: AbortSignal): Promise<Workshop> {
  const { clock, config, env, note, runners } = surroundings;
  await using opened = new AsyncDisposableStack();
  const engine = opened.use(
    await connectEngine({
      host: config.engine?.host,
      env,
      instance: randomUUID(),
      signal,
      clock,
      note,
      snapshots: { budgetBytes: config.snapshots.budget },
    }),
  );
  requireRoom(surroundings.dataFolder);
  const reporting = opened.use(await openReporting(surroundings));
  // It takes seconds, and no trial waits for it.
  const sweeping = sweep(engine, note, signal);
  opened.defer(() => sweeping);
  const extraCertificates = (await hostCertificates(config, env))?.pem;
  const kept = opened.move();
  return {
    ...reporting,
    engine,
    runners,
    clock,
    extraCertificates,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Never rejects. */
async function sweep(engine: Engine, note: (message: string) => void, signal: AbortSignal): Promise<void> {
  try {
    const { removed } = await engine.sweep(signal);
    if (removed.length > 0)
      note(`removed ${plural(removed.length, 'object')} that dead agents had left on the engine`);
  } catch (error) {
    if (!signal.aborted)
      note(`what dead agents left on the engine could not be removed: ${messageOf(error)}`);
  }
}

/** The same, and the models and budgets of one batch. */
export async function openWorkplace(surroundings: Surroundings, signal: AbortSignal): Promise<Workplace> {
  const { clock, config, env } = surroundings;
  await using opened = new AsyncDisposableStack();
  const workshop = opened.use(await openWorkshop(surroundings, signal));
  const gateway = opened.use(gatewayOf(config, env, workshop));
  const kept = opened.move();
  return {
    ...workshop,
    gateway,
    host: surroundings.host ?? hostEnvironmentOf(config, env),
    budgets: { ...config.budgets, batch: openBudget(config.budgets.batch, clock.now()) },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** The way to the configured models. */
export function gatewayOf(
  { models }: Config,
  env: NodeJS.ProcessEnv,
  { clock, extraCertificates }: Pick<Workshop, 'clock' | 'extraCertificates'>,
): Gateway {
  return openGateway({
    models,
    env,
    clock,
    scripted: (file) => scriptedUpstream(file, clock),
    caBundle: extraCertificates,
  });
}

/** Trials at a time that cores and memory of the engine's machine allow, for the largest of the sandboxes. At least one. */
export function concurrencyFor(
  { capabilities }: Engine,
  sandboxes: readonly { cpus: number; memory: number }[],
): number {
  const cpus = Math.max(...sandboxes.map((sandbox) => sandbox.cpus));
  const memory = Math.max(...sandboxes.map((sandbox) => sandbox.memory));
  const byCores = Math.floor(capabilities.cpus / cpus);
  // A quarter of the memory stays for the engine, its page cache and everybody else.
  const byMemory = Math.floor((capabilities.memoryBytes * 0.75) / memory);
  return Math.max(1, Math.min(byCores, byMemory));
}
