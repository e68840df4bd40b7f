import { Command } from '@commander-js/extra-typings';
import { askDaemon } from '../daemon/ask-daemon.ts';
import { wholeNumber, withConfigAndData } from '../options.ts';
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
    .description('make the daemon end when the running trials have ended and are reported')
    .action((options) => sendCommand(options, '/drain'));
}

export function cancelCommand() {
  return withConfigAndData(new Command('cancel'))
    .description("remove a run's trials from the daemon's queue for good, and end those that run")
    .argument('<run>', "the run's id")
    .action((run, options) => sendCommand(options, `/cancel/${encodeURIComponent(run)}`));
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
  out.print((answer as { message: string }).message);
}
