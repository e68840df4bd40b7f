import { Command } from '@commander-js/extra-typings';
import { type DaemonStatus, nothingListed } from '../../agent/daemon/status.ts';
import type { WaitingRun } from '../../agent/worker/waiting-runs.ts';
import { shellWord } from '../../text/escape.ts';
import { lines, ours, type Printable, stack, text, type Value } from '../../text/printable.ts';
import { duration, plural } from '../../text/quantities.ts';
import { askDaemon } from '../daemon/ask-daemon.ts';
import { wholeNumber, withConfigAndData } from '../options.ts';
import { buildStates } from '../output/activity-text.ts';
import { openSettings } from '../settings.ts';

interface DaemonAddress {
  config?: string | undefined;
  dataFolder?: string | undefined;
}

export function pauseCommand() {
  return withConfigAndData(new Command('pause'))
    .description('make the daemon start no trial until `offsite daemon resume`; running trials continue')
    .action((options) => sendCommand(options, '/pause'));
}

export function resumeDaemonCommand() {
  return withConfigAndData(new Command('resume'))
    .description('let the daemon start trials again')
    .action((options) => sendCommand(options, '/unpause'));
}

export function drainCommand() {
  return withConfigAndData(new Command('drain'))
    .description(
      'start no more trials, let the running ones end, report them if the service answers, and end the daemon',
    )
    .action((options) => sendCommand(options, '/drain'));
}

export function cancelCommand() {
  return withConfigAndData(new Command('cancel'))
    .description("remove the trials of a batch or run from this daemon's queue, and end those that run")
    .argument(
      '<batch>',
      'an id of a batch or of a run, its beginning, or the name of the suite of one open batch',
    )
    .action((name, options) => sendCommand(options, `/cancel/${encodeURIComponent(name)}`));
}

export function concurrencyCommand() {
  return withConfigAndData(new Command('concurrency'))
    .description('change how many trials the daemon runs at a time, until it reads its configuration again')
    .argument('<n>', 'trials at a time', wholeNumber)
    .action((trials, options) => sendCommand(options, `/concurrency/${trials}`));
}

/** Sends the daemon a command and prints its answer. */
async function sendCommand(options: DaemonAddress, path: string): Promise<void> {
  const { dataFolder, out } = await openSettings(options);
  const answer = await askDaemon(dataFolder, 'POST', path);
  const { message } = answer as { message: string };
  // The commands that it names need the folder as well.
  const folder = options.dataFolder === undefined ? '' : ` --data-folder ${shellWord(options.dataFolder)}`;
  out.print(message.replaceAll(/`offsite [^`]+/g, (command) => `${command}${folder}`));
}

export function statusCommand() {
  return withConfigAndData(new Command('status'))
    .description('show what the daemon is doing')
    .option('--json', 'print one JSON document on stdout')
    .action(async (options) => {
      const { dataFolder, out } = await openSettings(options);
      const answer = await askDaemon(dataFolder, 'GET', '/status');
      if (options.json) out.json(answer);
      else out.print(statusText(answer as DaemonStatus));
    });
}

/** A daemon's status for people. */
function statusText(status: DaemonStatus): Printable {
  const { finished, outbox, health, running } = status;
  const memory = Math.round(status.residentBytes / 1024 ** 2);
  const oldest = outbox.oldestMs === undefined ? '' : `, the oldest for ${duration(outbox.oldestMs)}`;
  const refused = outbox.parked > 0 ? `, ${outbox.parked} refused: offsite data outbox` : '';
  const compared =
    status.comparedMs === undefined ? '' : `; compared with the service ${duration(status.comparedMs)} ago`;
  const ended = finished.passed + finished.failed + finished.void;
  const elsewhere = status.claimedElsewhere.length;
  const others = elsewhere > 0 ? `, ${elsewhere} that cannot be claimed now` : '';
  const atATime = `${running.length} of ${status.concurrency}`;
  return stack([
    text`${status.mode}, process ${status.pid}, up ${duration(status.upMs)}, ${memory} MiB`,
    ...(status.waitsFor === undefined ? [] : [text`draining  ${lines(status.waitsFor)}`]),
    text`service   ${status.service}`,
    ...(status.engines?.map(
      ({ name, address, works, running: here }) =>
        text`engine    ${name}: ${address}, ${here} running${ours(works ? '' : ', does not answer')}`,
    ) ?? [text`engine    ${status.engine}`]),
    text`results   ${status.dataFolder}`,
    text`health    ${health.ok ? stateOf(status) : lines(health.troubles.join('; '))}`,
    text`trials    ${status.queued - elsewhere} queued${ours(others)}, ${atATime} running, ${ended} finished since the start`,
    text`verdicts  ${finished.passed} passed, ${finished.failed} failed, ${finished.void} void`,
    text`reports   ${outbox.queued} to send, ${outbox.sent} sent and not seen at the service yet${oldest}${refused}${compared}`,
    ...(status.blocked === undefined ? [] : [text`blocked   ${lines(status.blocked)}`]),
    ...status.limits.map(
      ({ model, limit, most, inFlight }) =>
        text`model     ${model}: ${inFlight} in flight or waiting, at most ${limit} in flight (auto, up to ${most})`,
    ),
    ...section(plural(running.length, 'running trial'), running, (trial) => {
      const on = trial.engine === undefined ? text`` : text`  on ${trial.engine}`;
      const { suite, run, ordinal, phase, forMs } = trial;
      return text`${trial.case} of ${suite} · ${run} #${ordinal}  ${phase}  ${duration(forMs)}${on}`;
    }),
    ...queuedRuns(status),
    ...section(plural(status.building.length, 'build'), status.building, ({ what, state, forMs }) => {
      const remark = buildStates[state] === '' ? '' : `  ${buildStates[state]}`;
      return text`${what}${ours(remark)}  ${duration(forMs)}`;
    }),
    ...section(plural(status.waiting.length, 'waiting run'), status.waiting, reasonOf),
    ...section(plural(status.parked.length, 'parked run'), status.parked, reasonOf),
    ...section(
      `${plural(status.unstarted.length, 'file')} of the queue not started yet`,
      status.unstarted,
      (file) => text`${file}`,
    ),
    ...section(
      `${plural(status.refused.length, 'file')} of the queue refused: enqueue the mended suite and delete the file; its .reason.txt says more`,
      status.refused,
      ({ file, reason }) => text`${file}: ${lines(reason)}`,
    ),
    ...section(
      `${plural(status.claimedElsewhere.length, 'trial')} that cannot be claimed now`,
      status.claimedElsewhere,
      (trial) =>
        text`${trial.case} · ${trial.run} #${trial.ordinal}  asked for again in ${duration(trial.askedAgainInMs)}: ${lines(trial.reason)}`,
    ),
    ...section(
      'what brings no runs',
      status.polls,
      ({ place: target, trouble: problem }) => text`${target}: ${lines(problem)}`,
    ),
  ]);
}

/** The next runs of the queue. Those that wait or are parked, and others' trials, have lists of their own. */
function queuedRuns({ queuedRuns: runs, waiting, parked, claimedElsewhere }: DaemonStatus): Value[] {
  const others = new Set([...waiting, ...parked].map(({ run }) => run));
  const next = runs
    .filter(({ run }) => !others.has(run))
    .map((queued) => {
      const elsewhere = claimedElsewhere.filter(({ run }) => run === queued.run).length;
      return { ...queued, trials: queued.trials - elsewhere };
    })
    .filter(({ trials }) => trials > 0);
  const title =
    next.length > 10 ? 'the next 10 queued runs; --json has more' : plural(next.length, 'queued run');
  return section(
    title,
    next.slice(0, 10),
    (queued) =>
      text`${queued.case} of ${queued.suite} · ${queued.run}  ${plural(queued.trials, 'trial')}  ${queued.batch}`,
  );
}

/** What a person has to look at although engine, service and loops work. */
function stateOf({ waiting, parked, refused, polls, outbox, blocked }: DaemonStatus): Printable {
  const open = [
    ...(blocked === undefined ? [] : ['no trial starts']),
    ...(waiting.length > 0 ? [plural(waiting.length, 'waiting run')] : []),
    ...(parked.length > 0 ? [plural(parked.length, 'parked run')] : []),
    ...(refused.length > 0 ? [plural(refused.length, 'refused file')] : []),
    ...(outbox.parked > 0 ? [plural(outbox.parked, 'refused report')] : []),
    ...(polls.length > 0 ? [`${plural(polls.length, 'place')} without runs`] : []),
  ];
  const isAsked = polls.every(({ trouble }) => trouble === nothingListed);
  const works = isAsked ? 'engine and service work; see below' : 'see below';
  return ours(open.length === 0 ? 'all is well' : `${works}: ${open.join(', ')}`);
}

function section<Item>(title: string, items: readonly Item[], lineOf: (item: Item) => Printable): Value[] {
  return items.length === 0 ? [] : ['', text`${title}:`, ...items.map((item) => text`  ${lineOf(item)}`)];
}

function reasonOf({ case: id, run, reason, askedAgainInMs }: WaitingRun): Printable {
  const again = askedAgainInMs === undefined ? '' : `  asked for again in ${duration(askedAgainInMs)}`;
  return text`${id} · ${run}${again}  ${lines(reason)}`;
}
