import { readFileSync } from 'node:fs';
import { Command, CommanderError } from '@commander-js/extra-typings';
import { lines, ours, stack } from '../text/printable.ts';
import { artifactsCommand } from './commands/artifacts.ts';
import { baseImageCommand } from './commands/base-image.ts';
import { batchesCommand } from './commands/batches.ts';
import { casesCommand } from './commands/cases.ts';
import { checkCommand } from './commands/check.ts';
import { cleanCommand } from './commands/clean.ts';
import { compareCommand } from './commands/compare.ts';
import {
  cancelCommand,
  concurrencyCommand,
  drainCommand,
  pauseCommand,
  unpauseCommand,
} from './commands/control.ts';
import { daemonCommand } from './commands/daemon.ts';
import { doctorCommand } from './commands/doctor.ts';
import { enqueueCommand } from './commands/enqueue.ts';
import { exportCommand } from './commands/export.ts';
import { imagesCommand } from './commands/images.ts';
import { integrationsCommand } from './commands/integrations.ts';
import { keysCommand } from './commands/keys.ts';
import { ledgerCommand } from './commands/ledger.ts';
import { modelsCommand } from './commands/models.ts';
import { outboxCommand } from './commands/outbox.ts';
import { promptsCommand } from './commands/prompts.ts';
import { rerunCommand } from './commands/rerun.ts';
import { resumeCommand } from './commands/resume.ts';
import { runCommand } from './commands/run.ts';
import { runsCommand } from './commands/runs.ts';
import { serveCommand } from './commands/serve.ts';
import { shellCommand } from './commands/shell.ts';
import { showCommand } from './commands/show.ts';
import { statusCommand } from './commands/status.ts';
import { tasksCommand } from './commands/tasks.ts';
import { viewCommand } from './commands/view.ts';
import { whoamiCommand } from './commands/whoami.ts';
import { exitCodes, printFailure } from './failure.ts';
import { Interrupted } from './interruption.ts';
import { Crashed } from './last-defence.ts';
import { openTerminal } from './terminal.ts';

/** Runs the command line and returns the exit code. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  const { out, err } = openTerminal();
  const program = new Command('offsite')
    .description(
      'Runs evaluation trials of coding agents in sealed local sandboxes and reports every result.',
    )
    .version(versionOf())
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (help) => out.print(ours(help.trimEnd())),
      // The message repeats the arguments, which a script may have got from anywhere.
      writeErr: (message) => err.print(stack(message.trimEnd().split('\n').map(lines))),
    })
    .showHelpAfterError('Run it with --help to see commands and options.');
  for (const command of commands()) program.addCommand(command.copyInheritedSettings(program));
  throwInsteadOfExiting(program);
  try {
    await program.parseAsync(argv, { from: 'user' });
    return Number(process.exitCode ?? exitCodes.done);
  } catch (error) {
    // Commander has already printed its message; 0 is --help and --version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.badInput;
    if (error instanceof Interrupted) return exitCodes.interrupted;
    // The error was announced when it escaped.
    if (error instanceof Crashed) return exitCodes.infrastructure;
    return printFailure(error, err);
  }
}

/** All commands, without the settings that they inherit from the program. */
export function commands(): Command[] {
  const all = [
    runCommand(),
    resumeCommand(),
    batchesCommand(),
    showCommand(),
    artifactsCommand(),
    shellCommand(),
    compareCommand(),
    checkCommand(),
    tasksCommand(),
    daemonCommand(),
    enqueueCommand(),
    statusCommand(),
    pauseCommand(),
    unpauseCommand(),
    drainCommand(),
    cancelCommand(),
    concurrencyCommand(),
    serveCommand(),
    viewCommand(),
    outboxCommand(),
    ledgerCommand(),
    baseImageCommand(),
    doctorCommand(),
    modelsCommand(),
    cleanCommand(),
    imagesCommand(),
    whoamiCommand(),
    integrationsCommand(),
    casesCommand(),
    runsCommand(),
    exportCommand(),
    rerunCommand(),
    promptsCommand(),
    keysCommand(),
  ];
  return all as unknown as Command[];
}

/** Makes commands throw instead of exit, so that the caller of `runProgram` can finish its work. */
function throwInsteadOfExiting(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) throwInsteadOfExiting(child as Command);
}

function versionOf(): string {
  const candidates = ['../../package.json', '../../../package.json'].map(
    (path) => new URL(path, import.meta.url),
  );
  for (const file of candidates) {
    try {
      return String(JSON.parse(readFileSync(file, 'utf8')).version);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return 'unknown';
}
