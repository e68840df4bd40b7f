import { once } from 'node:events';
import { Command } from '@commander-js/extra-typings';
import type { Logger } from 'pino';
import { ConfigRevisions } from '../../agent/config-revision.ts';
import type { SomeEngines } from '../../agent/engines/check.ts';
import { Executor, type ExecutorState, platformScope } from '../../agent/executor/executor.ts';
import type { Workplace } from '../../agent/executor/refusal.ts';
import type { WorkEvent } from '../../agent/worker/worker-parts.ts';
import { integrationsOf, localOrganization } from '../../api/service-access.ts';
import { isLoopback } from '../../base/foreign-traffic.ts';
import { permissions } from '../../contract/definition.ts';
import { takeLock } from '../../ledger/lock.ts';
import { listeningLock } from '../../ledger/platform.ts';
import { openService } from '../../service/service.ts';
import type { KeyEntry } from '../../service/store/keys.ts';
import { logDestination } from '../../text/output.ts';
import { lines, ours, type Printable, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { auditorHere } from '../audit-process.ts';
import { CommandContext } from '../context.ts';
import { workLog } from '../daemon/work-log.ts';
import { type OptionsOf, port, wholeNumber } from '../options.ts';

export function serveCommand() {
  return new Command('serve')
    .description('serve the embedded Eval Service over HTTP until stopped, and run its platform batches')
    .option('-p, --port <port>', 'the port (default: any free port)', port, 0)
    .option('--host <host>', 'the address to listen on', '127.0.0.1')
    .option(
      '--data-folder, --data <folder>',
      'the folder of its database (default: $OFFSITE_HOME or ~/.local/share/offsite)',
    )
    .option('--config <file>', 'the configuration')
    .option('-c, --concurrency <n>', 'trials at a time (default: from cores and memory)', wholeNumber)
    .option('--no-executor', 'run no trials: refuse batches that are started without `local: true`')
    .option('--quiet', 'log neither requests nor trials, only warnings')
    .action(async (options) => {
      await serve(options);
    });
}

type ServeOptions = OptionsOf<typeof serveCommand>;

async function serve(options: ServeOptions): Promise<void> {
  // In a bundle, only the default of a CommonJS package is there for an `import()`.
  const { default: pino } = await import('pino');
  await using context = CommandContext.open(
    { config: options.config, dataFolder: options.data },
    { creates: true },
  );
  const { env, config, dataFolder, clock, runners, redact, out, err } = context;
  const written = logDestination(err);
  const destination = {
    write(line: string) {
      written.write(line);
      work.logged();
    },
  };
  const level = options.quiet ? 'warn' : 'info';
  const log = pino({ level, timestamp: pino.stdTimeFunctions.isoTime }, destination);
  const queued = () => (executor ? context.ledger().queue.count(platformScope) : 0);
  using work = workLog(log, { clock, queued });
  context.note = (message) => log.info(message);
  const interrupted = context.interruption(options.executor ? {} : { doing: () => 'ending' });

  const { concurrency } = options;
  const executor = options.executor
    ? executorHere(context, { concurrency, log, observe: work.observe })
    : undefined;
  await using service = openService({
    dataFolder,
    clock,
    log,
    integrations: integrationsOf(runners),
    auditor: auditorHere(env, executor && { config: config.file }),
    countsAudited: config.baselines.audited === 'regraded',
    ...(executor && { platform: executor }),
  });
  const own = { organization: localOrganization, permissions, name: 'OFFSITE_API_KEY' };
  // A start that failed has made the database, so its keys tell.
  const isNew = service.listKeys().length === 0;
  const key = env.OFFSITE_API_KEY ? service.seedKey(env.OFFSITE_API_KEY, own) : undefined;
  const crashes = executor && context.ledger().crashes;
  interrupted.noteCrashesIn({ dataFolder, redact, ...(crashes && { crashes }) });
  const { url } = await service.listen({ host: options.host, port: options.port });
  using alone = takeLock(dataFolder, listeningLock);
  out.print(text`Eval Service at ${url}; its data is in ${dataFolder}`);
  if (isNew)
    out.print(
      text`it is a new service, without batches and keys: if the one that you mean has its data elsewhere, stop this one and name that folder with --data-folder`,
    );
  if (!alone)
    out.print(
      text`another \`offsite serve\` of this data folder runs too: both have the same batches and keys`,
    );
  if (key) out.print(text`the key in OFFSITE_API_KEY ${ours(rightsOf(key))}`);
  if (!isLoopback(options.host))
    err.print(
      text`keys and results go over the network unencrypted: have a web server with TLS in front of it`,
    );
  await using _running = executor;
  executor?.start(service.platform);
  if (!interrupted.signal.aborted) await once(interrupted.signal, 'abort');
}

/** What a service does with the key of its own environment: one that it knows keeps its rights. */
function rightsOf({ revokedAt, permissions: own }: KeyEntry): string {
  if (revokedAt !== null) return 'is revoked: requests with it are refused';
  if (own.length === permissions.length) return 'has all permissions';
  return `has the permissions ${own.join(', ')}`;
}

interface ExecutorOptions {
  /** Trials at a time. If not given, from the configuration, else from cores and memory. */
  concurrency: number | undefined;
  log: Logger;
  observe(event: WorkEvent): void;
}

/** The executor of this process's service. Prints each change of its state. */
export function executorHere(
  context: CommandContext,
  { concurrency, log, observe }: ExecutorOptions,
): Executor {
  let engines: SomeEngines | undefined;
  return new Executor({
    config: context.config,
    host: context.host,
    runners: context.runners,
    ledger: context.ledger(),
    clock: context.clock,
    random: Math.random,
    log,
    observe,
    async open(signal): Promise<Workplace> {
      engines ??= await context.enginesForTrials(signal);
      const revisions = new ConfigRevisions(await context.revision(engines, { concurrency }));
      context.noteLimits();
      context.closeWith(revisions);
      return { ...engines, revisions, extraCertificates: await context.certificates() };
    },
    changed: (state) => context.out.print(stateText(state)),
  });
}

function stateText(state: ExecutorState): Printable {
  switch (state.kind) {
    case 'working':
      return text`platform batches run here, ${plural(state.concurrency, 'trial')} at a time, on ${state.engine}`;
    case 'standby':
      return text`platform batches run in another process of this data folder; this one continues if that one ends`;
    case 'unable':
      return text`platform batches cannot run here yet: ${lines(state.reason)}`;
  }
}
