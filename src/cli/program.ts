import { Command, CommanderError } from '@commander-js/extra-typings';
import { settleHeap } from '../heap.ts';
import { nearest } from '../text/nearest.ts';
import { lines, ours, stack, text } from '../text/printable.ts';
import { documentsFolder, versionOf } from '../version.ts';
import type { CommandTree } from './command-tree.ts';
import { exitCodes } from './exit-codes.ts';
import { printFailure } from './failure.ts';
import { asksForAll, frontDoor, nextStep } from './front-door.ts';
import { rareOptions } from './options.ts';
import { openTerminal } from './terminal.ts';

/** Runs the command line and returns the exit code. */
export async function runProgram(given: readonly string[]): Promise<number> {
  const { out, err } = openTerminal();
  if (given.length === 0 || asksForAll(given)) {
    out.print(ours(frontDoor(documentsFolder())));
    if (given.length === 0) out.print(text`\n${nextStep(process.cwd())}`);
    return exitCodes.done;
  }
  const argv = given.join(' ') === 'help --all' ? ['--help'] : given;
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
    .configureHelp({ groupItems: usualFirst })
    .showHelpAfterError('Run it with --help to see commands and options.');
  program.addHelpText('after', () => {
    const folder = documentsFolder();
    return folder === undefined ? '' : `\nDocuments: ${folder}docs\nExamples:  ${folder}examples`;
  });
  for (const command of await needed(argv)) {
    program.addCommand(command, { hidden: internal.has(command.name()) });
  }
  // Commander throws instead of ending the process, so that the caller can finish its work.
  program.exitOverride();
  inheritSettings(program);
  try {
    refuseUnknownBelow(program, argv);
    await program.parseAsync(argv, { from: 'user' });
    return Number(process.exitCode ?? exitCodes.done);
  } catch (error) {
    // Commander has already printed its message; 0 is --help and --version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.badInput;
    return printFailure(error, err);
  }
}

/** Groups the items of a help text: those without a heading of their own come first, rare ones last. */
function usualFirst<Item>(
  _all: readonly Item[],
  shown: readonly Item[],
  headingOf: (item: Item) => string,
): Map<string, Item[]> {
  const place = (heading: string) => {
    if (heading === 'Options:' || heading === 'Commands:') return 0;
    return heading === rareOptions ? 2 : 1;
  };
  const groups = [...Map.groupBy(shown, headingOf)];
  return new Map(groups.toSorted(([one], [other]) => place(one) - place(other)));
}

/**
 * The commands by name, in the order of the help. A start loads only the code of its own command, because
 * loading takes most of a short command's time.
 */
const sources: Readonly<Record<string, () => Promise<unknown>>> = {
  quickstart: async () => (await import('./commands/quickstart.ts')).quickstartCommand(),
  init: async () => (await import('./commands/init.ts')).initCommand(),
  case: async () => (await import('./commands/case.ts')).caseCommand(),
  run: async () => (await import('./commands/run.ts')).runCommand(),
  start: async () => (await import('./commands/start.ts')).startCommand(),
  resume: async () => (await import('./commands/resume.ts')).resumeCommand(),
  abandon: async () => (await import('./commands/abandon.ts')).abandonCommand(),
  fork: async () => (await import('./commands/fork.ts')).forkCommand(),
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
  complete: async () => (await import('./commands/completion.ts')).completeCommand(),
};

/** Commands that no person types. */
const internal = new Set(['complete']);

/**
 * Commands that run for a long time, and that bytes of sandboxes and models pass through. For all others
 * {@link settleHeap} does not pay: it makes their start a quarter slower.
 */
const lasting = new Set([
  'quickstart',
  'run',
  'fork',
  'start',
  'resume',
  'check',
  'regrade',
  'daemon',
  'fleet',
  'serve',
  'view',
]);

/**
 * The commands that a command line needs: the one that it names. If it asks only for help, names none, or one
 * that does not exist, it ends with help or an error, which needs no command's code. The version needs none.
 */
async function needed(argv: readonly string[]): Promise<Command[]> {
  const [first = '', second = ''] = argv;
  if (first === '--version' || first === '-V') return [];
  const named = first === 'help' ? second : first;
  const source = Object.hasOwn(sources, named) ? sources[named] : undefined;
  const isHelp = first === 'help' || argv.includes('--help') || argv.includes('-h');
  if (source && !isHelp) return [await loaded(named, source)];
  const { askedHelp, commandTrees, placeholderCommand } = await import('./command-tree.ts');
  const asked = askedHelp(argv);
  if (asked) return [placeholderCommand(asked)];
  return source ? [await loaded(named, source)] : commandTrees.map(placeholderCommand);
}

async function loaded(name: string, source: () => Promise<unknown>): Promise<Command> {
  if (lasting.has(name)) settleHeap();
  return (await source()) as Command;
}

/** All commands, without the settings that they inherit from the program. */
export async function commands(): Promise<Command[]> {
  return (await Promise.all(Object.values(sources).map((source) => source()))) as Command[];
}

/** The trees of all commands that people type, as `npm run generate` writes them down. */
export async function readCommandTrees(): Promise<CommandTree[]> {
  const { treeOf } = await import('./command-tree.ts');
  return (await commands()).filter((command) => !internal.has(command.name())).map(treeOf);
}

/**
 * Refuses an unknown subcommand. If the command above it has an action of its own, commander would only say
 * that there are too many arguments.
 */
function refuseUnknownBelow(program: Command, argv: readonly string[]): void {
  const [name, word = '-'] = argv;
  const above = program.commands.find((command) => command.name() === name);
  if (!above || above.commands.length === 0 || above.registeredArguments.length > 0) return;
  const names = above.commands.map((command) => command.name());
  if (word.startsWith('-') || word === 'help' || names.includes(word)) return;
  const near = nearest(word, names);
  const meant = near === undefined ? '' : `\n(Did you mean ${near}?)`;
  above.error(`error: unknown command '${word}'${meant}`, { code: 'commander.unknownCommand' });
}

/** Gives a command's settings to its subcommands: how errors are printed, and that they are thrown. */
function inheritSettings(command: Command): void {
  for (const child of command.commands) inheritSettings(child.copyInheritedSettings(command) as Command);
}
