import { Command, CommanderError } from '@commander-js/extra-typings';
import { commands } from '../../src/cli/command-list.ts';

/**
 * Parses a command line with the options of the real commands, and does nothing else.
 *
 * @returns what is wrong with it; undefined if nothing is
 */
export async function problemOf(args: readonly string[]): Promise<CommanderError | undefined> {
  const program = new Command('offsite').version('').enablePositionalOptions();
  program.exitOverride().configureOutput({ writeOut: () => undefined, writeErr: () => undefined });
  for (const command of await commands()) {
    prepare(command, program as Command);
    program.addCommand(command);
  }
  try {
    await program.parseAsync(args, { from: 'user' });
    return undefined;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.code === 'commander.helpDisplayed' || error.code === 'commander.version' ? undefined : error;
  }
}

/** A command that says what it could do with its arguments, and does not do it. */
function prepare(command: Command, above: Command): void {
  command.copyInheritedSettings(above);
  for (const child of command.commands) prepare(child as Command, command);
  if (command.commands.length === 0 || isRunnable(command)) command.action(() => undefined);
}

/** Whether a command with others below it does something itself. */
function isRunnable(command: Command): boolean {
  return (command as unknown as { _actionHandler: unknown })._actionHandler !== null;
}
