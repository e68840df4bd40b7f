import { execa } from 'execa';
import { ConfigRevisions } from '../../agent/config-revision.ts';
import { controlRoutes, openControlSocket, statusRoutes } from '../../agent/daemon/control-socket.ts';
import { controlSocketOf } from '../../agent/daemon/control-socket-path.ts';
import { Daemon, type DaemonEnd } from '../../agent/daemon/daemon.ts';
import type { Workshop } from '../../api/context.ts';
import { isLoopback } from '../../base/foreign-traffic.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { daemonLock } from '../../ledger/queue.ts';
import { listen } from '../../service/listen.ts';
import type { Config } from '../../suite/config-file.ts';
import { loadConfig } from '../../suite/load-config.ts';
import { wrongDaemonProfiles } from '../../suite/planned-variant.ts';
import { plural } from '../../text/quantities.ts';
import { secretsOf } from '../../trial/prepare/credentials.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { endInSteps, interruption, togetherMs } from '../interruption.ts';
import { lastDefence } from '../last-defence.ts';
import { address } from '../options.ts';
import type { CommonOptions } from '../settings.ts';
import { daemonLog } from './log.ts';
import { workLog } from './work-log.ts';

interface DaemonOptions extends CommonOptions {
  concurrency?: number | undefined;
  listen?: { host: string; port: number } | undefined;
  once?: true | undefined;
}

/** Runs the daemon in this process until it ends. Returns the exit code. */
export async function runDaemon(options: DaemonOptions): Promise<number> {
  await using context = CommandContext.open(options, { creates: true });
  const { env, dataFolder, clock, redactor, redact } = context;
  const { config } = context;
  const log = daemonLog(context.err, () => work.logged());
  using work = workLog(log, { clock, queued: () => daemon.status().queued });
  context.note = (message) => log.info(message);
  const systemd = serviceManager(env, context.note);
  await using opened = new AsyncDisposableStack();

  const workshop = await openAlone(context);
  const revise = (config: Config) => context.revision(workshop, { config, concurrency: options.concurrency });
  const revisions = opened.use(new ConfigRevisions(await revise(config)));
  context.noteLimits();
  const daemon = new Daemon({
    ...workshop,
    random: Math.random,
    log,
    revisions,
    beginEnding: () => context.end(),
    alive: () => systemd.notify('WATCHDOG=1'),
    observe: work.observe,
  });
  const reload = async () => {
    try {
      const again = readAgain(options.config, env, config);
      redactor.learn(secretsOf(again.config, env));
      daemon.change(await revise(again.config));
      log.info({ file: again.config.file, needRestart: again.needRestart }, 'read the configuration again');
    } catch (error) {
      if (!(error instanceof OffsiteError)) throw error;
      log.error({ reason: messageOf(error) }, 'the configuration stays as it was');
    }
  };
  let interrupted = false;
  using _signals = endInSteps({
    first() {
      daemon.drain();
      log.info(
        `a second signal, later than ${togetherMs / 1_000} s, ends the running trials and queues them again`,
      );
    },
    second() {
      interrupted = true;
      daemon.cancel();
    },
    warn: (fields, message) => log.warn(fields, message),
  });
  process.on('SIGHUP', reload);
  opened.defer(() => void process.off('SIGHUP', reload));
  let crashed = false;
  using defence = lastDefence({
    announce: (message) => log.fatal(message),
    stop() {
      crashed = true;
      daemon.cancel();
    },
  });
  defence.noteCrashesIn({ dataFolder, redact, crashes: workshop.ledger.crashes });
  opened.use(await openControlSocket(dataFolder, controlRoutes(daemon)));
  const given = config.daemon.listen;
  const listenAt = options.listen ?? (given === undefined ? undefined : address(given));
  const listener = listenAt && (await listen(statusRoutes(daemon).fetch, listenAt, clock));
  opened.defer(() => listener?.close(0));
  if (listener && !isLoopback(new URL(listener.url).hostname))
    log.warn(
      { http: listener.url },
      'everybody who reaches this address may read the status and the metrics',
    );
  const { service, engine } = workshop;
  const { concurrency } = daemon.status();
  const at = { service, engine: engine.address, concurrency, dataFolder, http: listener?.url };
  log.info({ pid: process.pid, ...at, socket: controlSocketOf(dataFolder) }, 'the daemon is working');
  if (config.file === undefined) log.warn('no offsite.yaml was found: the defaults apply');
  const { suites, cases } = config.daemon;
  if (suites.length + cases.length === 0)
    log.info('neither daemon.suites nor daemon.cases is configured: only enqueued suites run');
  else if (config.service?.url === undefined && !env.OFFSITE_URL)
    log.warn('no service.url is configured: the suites and cases are those of the embedded service');
  for (const reason of wrongDaemonProfiles(config, workshop.runners))
    log.warn({ reason }, 'daemon.profiles is wrong: runs that need it will wait');
  await systemd.notify('READY=1');

  const end = await daemon.run({ once: options.once === true });
  await systemd.notify('STOPPING=1');
  const missing = options.once ? notDone(end) : [];
  const left =
    end.unreported > 0
      ? [`${plural(end.unreported, 'result')} not reported: the next start reports them`]
      : [];
  const said = options.once ? missing : left;
  const why = said.length === 0 ? '' : `: ${said.join(', ')}`;
  log.info(end, `the daemon has ended${why}`);
  if (crashed) return exitCodes.infrastructure;
  if (interrupted) return exitCodes.interrupted;
  // The same as for `offsite run`: 3 if something could not be run, judged or reported.
  return missing.length === 0 ? exitCodes.done : exitCodes.infrastructure;
}

/** Opens what the daemon works with, and takes the data folder's lock for daemons. */
async function openAlone(context: CommandContext): Promise<Workshop> {
  // No trial runs yet, so a signal may simply end the process.
  using interrupted = interruption(context.note);
  const workshop = await context.workshop(interrupted.signal);
  const lock = workshop.ledger.takeLock(daemonLock);
  if (!lock) {
    throw new OffsiteError(`another daemon, or \`offsite resume\`, works in ${context.dataFolder}`, {
      code: 'DAEMON_RUNNING',
      // Not a mistake in the configuration: a service manager tries again.
      kind: 'infrastructure',
      hint:
        '`offsite daemon status` shows what a daemon is doing; wait until it, or `offsite resume`, has ended. A second daemon needs ' +
        'another --data-folder.',
    });
  }
  context.closeWith(lock);
  return workshop;
}

/** What a daemon that ends by itself has left. */
function notDone(end: DaemonEnd): string[] {
  const { finished, unreported, isCompared, queued, refused, isBegun, pollFailures, refusal } = end;
  const counts: [number, string][] = [
    [finished.void, 'void trial'],
    [unreported, 'unreported result'],
    [queued, 'queued trial'],
    [refused.files, 'refused file'],
    [pollFailures.length, 'failed poll'],
  ];
  return [
    ...counts.flatMap(([count, what]) => (count > 0 ? [plural(count, what)] : [])),
    ...(isBegun ? [] : ['a suite of the queue was not started']),
    ...(isCompared ? [] : ["the service's records could not be read"]),
    ...(refusal === undefined ? [] : [refusal]),
  ];
}

/** Settings that need a restart, and where they are in the configuration. */
const readAtStart: [name: string, of: (config: Config) => unknown][] = [
  ['service', ({ service }) => service],
  ['engine', ({ engine }) => engine],
  ['engines', ({ engines }) => engines],
  ['dataFolder', ({ dataFolder }) => dataFolder],
  ['caBundle', ({ caBundle }) => caBundle],
  ['lease', ({ lease }) => lease],
  ['snapshots', ({ snapshots }) => snapshots],
  ['daemon.listen', ({ daemon }) => daemon.listen],
];

/**
 * Reads the configuration again. `needRestart` names settings that need a restart and are not what
 * they were at the start. Throws as `loadConfig` does.
 */
function readAgain(
  named: string | undefined,
  env: NodeJS.ProcessEnv,
  atStart: Config,
): { config: Config; needRestart: string[] } {
  const config = loadConfig({ named, env });
  const changed = readAtStart.filter(([, of]) => JSON.stringify(of(config)) !== JSON.stringify(of(atStart)));
  return { config, needRestart: changed.map(([name]) => name) };
}

/** Milliseconds for `systemd-notify`, which writes one datagram. */
const timeoutMs = 10_000;

/** Notifies systemd of the daemon's state, if systemd asked for it. */
interface ServiceManager {
  notify(...assignments: string[]): Promise<void>;
}

/**
 * Follows sd_notify(3), with systemd's own program, because Node cannot send datagrams to a Unix socket. Does
 * nothing if `NOTIFY_SOCKET` is not set. Notes only the first failure.
 */
function serviceManager(env: NodeJS.ProcessEnv, note: (message: string) => void): ServiceManager {
  let noted = false;
  return {
    async notify(...assignments) {
      if (!env.NOTIFY_SOCKET) return;
      const { failed, shortMessage } = await execa('systemd-notify', assignments, {
        env: { NOTIFY_SOCKET: env.NOTIFY_SOCKET },
        reject: false,
        timeout: timeoutMs,
      });
      if (failed && !noted) note(`cannot notify systemd: ${shortMessage}`);
      noted ||= failed;
    },
  };
}
