import { Command, CommanderError } from '@commander-js/extra-typings';
import { documentsFolder, versionOf } from '../base/version.ts';
import { nearest } from '../text/nearest.ts';
import { lines, ours, type Printable, stack, text } from '../text/printable.ts';
import { internal, needed, nouns } from './command-list.ts';
import { exitCodes } from './exit-codes.ts';
import { printFailure } from './failure.ts';
import { asksForAll, frontDoor, nextStep } from './front-door.ts';
import { newName } from './old-names.ts';
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
  const argv = withNewName(given, (line) => err.print(line));
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
    refuseUnknown(program, argv);
    await program.parseAsync(argv, { from: 'user' });
    return Number(process.exitCode ?? exitCodes.done);
  } catch (error) {
    // Commander has already printed its message; 0 is --help and --version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.badInput;
    return printFailure(error, err);
  }
}

/**
 * A command line with the new name of its command. `help X` asks for the help of X, and so does a word that
 * only has commands below it.
 */
function withNewName(given: readonly string[], note: (message: Printable) => void): readonly string[] {
  if (given.join(' ') === 'help --all') return ['--help'];
  const [first = '', ...rest] = given;
  if (first === 'help') return withNewName([...rest, '--help'], note);
  if (given.length === 1 && Object.hasOwn(nouns, first)) return [first, '--help'];
  const name = newName(given);
  if (name === undefined) return given;
  note(text`\`offsite ${first}\` is now \`offsite ${name}\`; the next release has only the new name`);
  return withNewName([...name.split(' '), ...rest], note);
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
 * Refuses an unknown command. If the command above it has an action of its own, commander would only say that
 * there are too many arguments.
 */
function refuseUnknown(program: Command, argv: readonly string[]): void {
  let above = program;
  for (const word of argv) {
    if (above.commands.length === 0 || word.startsWith('-') || word === 'help') return;
    const below = above.commands.find((command) => command.name() === word);
    if (!below) {
      const near = nearest(
        word,
        above.commands.map((command) => command.name()),
      );
      // Many know a command by its last word.
      const inside = above.commands.flatMap((command) =>
        command.commands.flatMap((one) => (one.name() === word ? `${command.name()} ${word}` : [])),
      );
      const like = inside.length > 0 ? inside.join(', or ') : near;
      const meant = like === undefined ? '' : `\n(Did you mean ${like}?)`;
      above.error(`error: unknown command '${word}'${meant}`, { code: 'commander.unknownCommand' });
    }
    above = below as Command;
  }
}

/**
 * Gives a command's settings to its subcommands: how errors are printed, and that they are thrown. A
 * subcommand does not see the options of the command above it, so they must not stand before its name.
 */
function inheritSettings(command: Command): void {
  command.hook('preSubcommand', (above, below) => {
    const early = above.options.find((one) => above.getOptionValueSource(one.attributeName()) === 'cli');
    if (early) below.error(`error: '${early.long}' must stand after '${below.name()}'`);
  });
  for (const child of command.commands) inheritSettings(child.copyInheritedSettings(command) as Command);
}
