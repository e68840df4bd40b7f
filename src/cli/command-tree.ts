import { Argument, Command, Option } from '@commander-js/extra-typings';

/** What a command takes, as plain data. */
export interface CommandTree {
  name: string;
  description: string;
  arguments: ArgumentShape[];
  /** Without those that help does not show. */
  options: OptionShape[];
  commands: CommandTree[];
  /** Whether it has a command `help`: commander adds one to a command that only has others below it. */
  hasHelp: boolean;
}

interface ArgumentShape {
  /** As it is written: `[file]`, `<batch>`, `<words...>`. */
  term: string;
  /** As help shows it. */
  help: string;
  choices?: readonly string[] | undefined;
}

export interface OptionShape {
  /** As they are written: `-c, --concurrency <n>`. */
  flags: string;
  description: string;
  /** As help shows it, with choices and default. */
  help: string;
  choices?: readonly string[] | undefined;
  /** The heading that help shows it under; absent for the usual ones. */
  group?: string | undefined;
}

/** What help shows above options without a heading of their own. */
const usualHeading = 'Options:';

/** The tree of a command. */
export function treeOf(command: Command): CommandTree {
  const help = command.createHelp();
  return {
    name: command.name(),
    description: command.description(),
    arguments: command.registeredArguments.map((argument) => ({
      term: termOf(argument),
      help: help.argumentDescription(argument),
      choices: argument.argChoices,
    })),
    options: command.options
      .filter(({ hidden }) => !hidden)
      .map((option) => ({
        flags: option.flags,
        description: option.description,
        help: help.optionDescription(option),
        choices: option.argChoices,
        group: option.helpGroupHeading === usualHeading ? undefined : option.helpGroupHeading,
      })),
    commands: command.commands.map((inner) => treeOf(inner as Command)),
    hasHelp: help.visibleCommands(command).length > command.commands.length,
  };
}

/** A command without an action, whose help is that of the real one. */
export function placeholderCommand(tree: CommandTree): Command {
  const command = new Command(tree.name).description(tree.description).helpCommand(tree.hasHelp);
  for (const { term, help } of tree.arguments) command.addArgument(new Argument(term, help));
  for (const { flags, help, group } of tree.options) {
    const option = new Option(flags, help);
    command.addOption(group === undefined ? option : option.helpGroup(group));
  }
  for (const inner of tree.commands) command.addCommand(placeholderCommand(inner));
  return command as Command;
}

/**
 * The command whose help is all that a command line asks for: `run --help`, `fleet run -h`. With
 * anything else in the line, the real command decides what it means.
 */
export function askedHelp(argv: readonly string[], trees: readonly CommandTree[]): CommandTree | undefined {
  const isHelp = ['--help', '-h'].includes(argv.at(-1) ?? '');
  const [name, ...inner] = argv.slice(0, -1);
  if (!isHelp || name === undefined) return undefined;
  const top = trees.find((tree) => tree.name === name);
  const below = inner.reduce<CommandTree | undefined>(
    (tree, word) => tree?.commands.find((each) => each.name === word),
    top,
  );
  return below && top;
}

function termOf(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}
