import { hostname } from 'node:os';
import { Hono } from 'hono';
import { ConfigRevisions } from '../../agent/config-revision.ts';
import { openControlSocket } from '../../agent/daemon/control-socket.ts';
import { inputError } from '../../base/offsite-error.ts';
import { versionOf } from '../../base/version.ts';
import { memoryText } from '../../fleet/placement.ts';
import { FleetWorker } from '../../fleet/worker/fleet-worker.ts';
import { ModelPermits } from '../../fleet/worker/model-permits.ts';
import { healthRoutes } from '../../fleet/worker/routes.ts';
import { fleetLock } from '../../ledger/fleet-tasks.ts';
import { listen } from '../../service/listen.ts';
import { CommandContext } from '../context.ts';
import { daemonLog } from '../daemon/log.ts';
import { workLog } from '../daemon/work-log.ts';
import { exitCodes } from '../exit-codes.ts';
import { endInSteps, interruption } from '../interruption.ts';
import { lastDefence } from '../last-defence.ts';
import type { CommonOptions } from '../settings.ts';
import { openFleet, openStorage, requireService } from './control.ts';

export interface WorkerOptions extends CommonOptions {
  concurrency?: number | undefined;
  pool?: string[] | undefined;
  listen?: { host: string; port: number } | undefined;
  memory?: number | undefined;
}

/** Runs a worker of the fleet in this process until it ends. Returns the exit code. */
export async function runWorker(options: WorkerOptions): Promise<number> {
  await using context = CommandContext.open(options, { creates: true });
  const { config, dataFolder, clock, redact } = context;
  const log = daemonLog(context.err, () => work.logged());
  const queued = () => workshop.ledger.queue.count({ service: workshop.service, lock: fleetLock });
  using work = workLog(log, { clock, queued });
  context.note = (message) => log.info(message);
  const storage = openStorage(context);
  await requireService(context);
  const lock = context.ledger().takeLock(fleetLock);
  if (!lock)
    throw inputError('FLEET_WORKER_RUNNING', `another worker of the fleet works in ${dataFolder}`, {
      hint: 'A second worker on this machine needs another --data-folder.',
    });
  context.closeWith(lock);
  if ((config.engines?.length ?? 0) > 1)
    throw inputError('FLEET_ENGINES', 'a worker of the fleet uses one engine, and `engines` names several', {
      hint: 'Start a worker for each engine, with a --config and a --data-folder of its own.',
    });
  const workshop = await openWorkshop(context);
  const machine = `${hostname()}/${workshop.ledger.agentId}`;
  const fleet = await openFleet(context, machine);
  const connection = { ...fleet, fleet: { ...config.fleet, ...(options.pool && { pools: options.pool }) } };
  await using permits = new ModelPermits({
    connection,
    clock,
    lost: (model) => worker.losePermits(model),
    note: (message) => log.warn(message),
  });
  context.models.permits = permits.of;
  const revision = await context.revision(workshop, { concurrency: options.concurrency });
  await using revisions = new ConfigRevisions(revision);
  context.noteLimits();
  const name = `${machine}/${revision.concurrency}`;
  const worker = new FleetWorker({
    ...workshop,
    connection,
    storage,
    log,
    name,
    revisions,
    version: versionOf(),
    random: Math.random,
    memory: options.memory,
    observe: work.observe,
  });
  let crashed = false;
  using defence = lastDefence({
    announce: (message) => log.fatal(message),
    stop() {
      crashed = true;
      context.end();
      worker.end();
      worker.end();
    },
  });
  defence.noteCrashesIn({ dataFolder, redact, crashes: workshop.ledger.crashes });
  using _signals = endInSteps({
    first: () => worker.end(),
    second() {
      context.end();
      worker.end();
    },
    warn: (fields, message) => log.warn(fields, message),
  });
  const routes = new Hono();
  routes.post('/drain', (asked) => asked.json({ running: worker.drain() }));
  await using opened = new AsyncDisposableStack();
  opened.use(await openControlSocket(dataFolder, routes, 'fleet-worker'));
  const listener = options.listen && (await listen(healthRoutes(worker).fetch, options.listen, clock));
  opened.defer(() => listener?.close(0));
  const { service, engine } = workshop;
  await worker.run(({ pools, labels, trialMemory }) => {
    const { address: server, namespace } = config.fleet;
    const http = listener?.url;
    const at = { server, namespace, service, engine: engine.address, dataFolder, http };
    const offer = { pools, labels, memory: memoryText(trialMemory) };
    log.info(
      { pid: process.pid, concurrency: revision.concurrency, ...offer, ...at },
      'the worker is working',
    );
  });
  log.info('the worker has ended');
  return crashed ? exitCodes.infrastructure : exitCodes.done;
}

async function openWorkshop(context: CommandContext) {
  // No trial runs yet, so a signal may simply end the process.
  using interrupted = interruption(context.note);
  return await context.workshop(interrupted.signal);
}
