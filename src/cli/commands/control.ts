import { Command } from '@commander-js/extra-typings';
import { CommandContext } from '../context.ts';
import { askDaemon } from '../daemon/ask-daemon.ts';
import { wholeNumber, withPlaces } from '../options.ts';

interface Places {
  config?: string | undefined;
  dataFolder?: string | undefined;
}

export function pauseCommand() {
  return withPlaces(new Command('pause'))
    .description('have the daemon begin no trial until `unpause`; those that run go on')
    .action((options) => tell(options, '/pause'));
}

export function unpauseCommand() {
  return withPlaces(new Command('unpause'))
    .description('have the daemon begin trials again')
    .action((options) => tell(options, '/unpause'));
}

export function drainCommand() {
  return withPlaces(new Command('drain'))
    .description('have the daemon end once the trials that run have ended and are reported')
    .action((options) => tell(options, '/drain'));
}

export function cancelCommand() {
  return withPlaces(new Command('cancel'))
    .description("take a run's trials out of the daemon's queue for good, and end those that run")
    .argument('<run>', "the run's id")
    .action((run, options) => tell(options, `/cancel/${encodeURIComponent(run)}`));
}

export function concurrencyCommand() {
  return withPlaces(new Command('concurrency'))
    .description('change how many trials the daemon runs at a time, until it reads its configuration again')
    .argument('<n>', 'trials at a time', wholeNumber)
    .action((trials, options) => tell(options, `/concurrency/${trials}`));
}

/** Tells the daemon something and prints its answer. */
async function tell(options: Places, path: string): Promise<void> {
  await using context = CommandContext.open(options);
  const answer = await askDaemon(context.dataFolder, 'POST', path);
  context.out.print((answer as { message: string }).message);
}
