import { Command, CommanderError } from '@commander-js/extra-typings';
import { settleHeap } from '../heap.ts';
import { lines, ours, stack } from '../text/printable.ts';
import { exitCodes, printFailure } from './failure.ts';
import { Interrupted } from './interruption.ts';
import { Crashed } from './last-defence.ts';
import { openTerminal } from './terminal.ts';
import { versionOf } from './version.ts';

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
  if (lasting.has(argv[0] ?? '')) settleHeap();
  for (const command of await commands(argv[0])) {
    program.addCommand(command, { hidden: internal.has(command.name()) });
  }
  // So that the caller of this function can finish its work.
  program.exitOverride();
  inheritSettings(program);
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

/**
 * The commands by name, in the order of the help. A start reads only the code of its own command, which takes
 * most of a short command's time.
 */
const sources: Readonly<Record<string, () => Promise<unknown>>> = {
  init: async () => (await import('./commands/init.ts')).initCommand(),
  case: async () => (await import('./commands/case.ts')).caseCommand(),
  run: async () => (await import('./commands/run.ts')).runCommand(),
  start: async () => (await import('./commands/start.ts')).startCommand(),
  resume: async () => (await import('./commands/resume.ts')).resumeCommand(),
  batches: async () => (await import('./commands/batches.ts')).batchesCommand(),
  show: async () => (await import('./commands/show.ts')).showCommand(),
  artifacts: async () => (await import('./commands/artifacts.ts')).artifactsCommand(),
  shell: async () => (await import('./commands/shell.ts')).shellCommand(),
  compare: async () => (await import('./commands/compare.ts')).compareCommand(),
  regrade: async () => (await import('./commands/regrade.ts')).regradeCommand(),
  check: async () => (await import('./commands/check.ts')).checkCommand(),
  tasks: async () => (await import('./commands/tasks.ts')).tasksCommand(),
  import: async () => (await import('./commands/import.ts')).importCommand(),
  daemon: async () => (await import('./commands/daemon.ts')).daemonCommand(),
  enqueue: async () => (await import('./commands/enqueue.ts')).enqueueCommand(),
  status: async () => (await import('./commands/status.ts')).statusCommand(),
  pause: async () => (await import('./commands/control.ts')).pauseCommand(),
  unpause: async () => (await import('./commands/control.ts')).unpauseCommand(),
  drain: async () => (await import('./commands/control.ts')).drainCommand(),
  cancel: async () => (await import('./commands/control.ts')).cancelCommand(),
  concurrency: async () => (await import('./commands/control.ts')).concurrencyCommand(),
  fleet: async () => (await import('./commands/fleet.ts')).fleetCommand(),
  serve: async () => (await import('./commands/serve.ts')).serveCommand(),
  view: async () => (await import('./commands/view.ts')).viewCommand(),
  outbox: async () => (await import('./commands/outbox.ts')).outboxCommand(),
  ledger: async () => (await import('./commands/ledger.ts')).ledgerCommand(),
  'base-image': async () => (await import('./commands/base-image.ts')).baseImageCommand(),
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand(),
  models: async () => (await import('./commands/models.ts')).modelsCommand(),
  clean: async () => (await import('./commands/clean.ts')).cleanCommand(),
  images: async () => (await import('./commands/images.ts')).imagesCommand(),
  whoami: async () => (await import('./commands/whoami.ts')).whoamiCommand(),
  integrations: async () => (await import('./commands/integrations.ts')).integrationsCommand(),
  cases: async () => (await import('./commands/cases.ts')).casesCommand(),
  runs: async () => (await import('./commands/runs.ts')).runsCommand(),
  export: async () => (await import('./commands/export.ts')).exportCommand(),
  rerun: async () => (await import('./commands/rerun.ts')).rerunCommand(),
  prompts: async () => (await import('./commands/prompts.ts')).promptsCommand(),
  keys: async () => (await import('./commands/keys.ts')).keysCommand(),
  completion: async () => (await import('./commands/completion.ts')).completionCommand(),
  complete: async () =>
    (await import('./commands/completion.ts')).completeCommand(commandNames, commandNamed),
};

/** Commands that no person types. */
const internal = new Set(['complete']);

function commandNames(): string[] {
  return Object.keys(sources).filter((name) => !internal.has(name));
}

async function commandNamed(name: string): Promise<Command | undefined> {
  return Object.hasOwn(sources, name) ? (await commands(name))[0] : undefined;
}

/**
 * Commands that last, because bytes of sandboxes and models pass through them. The others are over before a
 * settled heap pays: it makes their start a quarter slower.
 */
const lasting = new Set(['run', 'start', 'resume', 'check', 'regrade', 'daemon', 'fleet', 'serve', 'view']);

/**
 * The commands without the settings that they inherit from the program. If the first argument names one, only
 * that one, and none if it asks for the version.
 */
export async function commands(named?: string): Promise<Command[]> {
  if (named === '--version' || named === '-V') return [];
  const one = named !== undefined && Object.hasOwn(sources, named) ? sources[named] : undefined;
  const read = one ? [one] : Object.values(sources);
  return (await Promise.all(read.map((source) => source()))) as Command[];
}

/** Gives the commands below a command its settings: how errors are printed, and that they are thrown. */
function inheritSettings(command: Command): void {
  for (const child of command.commands) inheritSettings(child.copyInheritedSettings(command) as Command);
}
