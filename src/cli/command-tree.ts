import { Argument, Command } from '@commander-js/extra-typings';
import generated from './command-tree.json' with { type: 'json' };

/** What a command takes, as plain data. */
export interface CommandTree {
  name: string;
  description: string;
  arguments: ArgumentShape[];
  /** Without those that help does not show. */
  options: OptionShape[];
  commands: CommandTree[];
}

interface ArgumentShape {
  /** As it is written: `[file]`, `<batch>`, `<words...>`. */
  term: string;
  choices?: readonly string[] | undefined;
}

export interface OptionShape {
  /** As they are written: `-c, --concurrency <n>`. */
  flags: string;
  description: string;
  choices?: readonly string[] | undefined;
}

/**
 * All commands that people type, in the order of the help. `npm run generate` writes them down, so that help
 * and completion need not read the code of every command.
 */
export const commandTrees: readonly CommandTree[] = generated;

/** The tree of a command. */
export function treeOf(command: Command): CommandTree {
  return {
    name: command.name(),
    description: command.description(),
    arguments: command.registeredArguments.map((argument) => ({
      term: termOf(argument),
      choices: argument.argChoices,
    })),
    options: command.options
      .filter(({ hidden }) => !hidden)
      .map(({ flags, description, argChoices }) => ({ flags, description, choices: argChoices })),
    commands: command.commands.map((inner) => treeOf(inner as Command)),
  };
}

/** A command without an action, which a list of commands shows like the real one. */
export function placeholderCommand({ name, description, arguments: given, options }: CommandTree): Command {
  const command = new Command(name).description(description);
  for (const { term } of given) command.addArgument(new Argument(term));
  for (const { flags } of options) command.option(flags);
  return command as Command;
}

function termOf(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}
