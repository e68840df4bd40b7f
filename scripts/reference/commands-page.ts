import type { Argument, Command, Option } from '@commander-js/extra-typings';
import { commands } from '../../src/cli/command-list.ts';
import { code, page, plain, table, toSection } from './markdown.ts';

/** The page of all commands with their arguments and options, from the same objects as `--help`. */
export async function commandsPage(): Promise<string> {
  const all = await commands();
  const list = all.map((command) => [
    toSection(`offsite ${command.name()}`, command.name()),
    plain(sentence(command.description())),
  ]);
  return page(
    'Commands',
    'Every command also prints its own help: `offsite run --help`. [Exit codes](exit-codes.md) ' +
      'are the same for all.',
    table(['command', 'what it does'], list),
    ...all.flatMap((command) => sections(command, 'offsite', 2)),
  );
}

function sections(command: Command, above: string, level: number): string[] {
  const name = `${above} ${command.name()}`;
  const options = command.options.filter(({ hidden }) => !hidden);
  return [
    `${'#'.repeat(level)} ${name}`,
    plain(sentence(command.description())),
    `\`\`\`text\n${name} ${command.usage()}\n\`\`\``,
    command.registeredArguments.length === 0
      ? ''
      : table(['argument', 'what it is'], command.registeredArguments.map(argumentRow)),
    options.length === 0 ? '' : table(['option', 'what it does'], options.map(optionRow)),
    ...command.commands.flatMap((each) => sections(each as Command, name, Math.min(level + 1, 4))),
  ];
}

function argumentRow(argument: Argument): string[] {
  return [code(argument.name()), plain(withDefaults(argument))];
}

function optionRow(option: Option): string[] {
  return [code(option.flags), plain(withDefaults(option))];
}

function withDefaults(one: Argument | Option): string {
  const { description, argChoices, defaultValue, defaultValueDescription } = one;
  const shown = defaultValueDescription ?? (isShown(defaultValue) ? `\`${defaultValue}\`` : undefined);
  const extra = [
    ...(argChoices === undefined ? [] : [`one of ${argChoices.map((each) => `\`${each}\``).join(', ')}`]),
    ...(shown === undefined ? [] : [`default: ${shown}`]),
  ];
  return extra.length === 0 ? description : `${description} (${extra.join('; ')})`;
}

function isShown(value: unknown): boolean {
  return value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.:?!]$/.test(text) ? '' : '.'}`;
}
