import type { Argument, Command, Option } from '@commander-js/extra-typings';
import { commands } from '../../src/cli/command-list.ts';
import { code, page, plain, table, toSection } from './markdown.ts';

/** An option that at least so many commands have is described once for all of them. */
const fewestShared = 3;

const sharedTitle = 'Options that several commands have';

/** The page of all commands with their arguments and options, from the same objects as `--help`. */
export async function commandsPage(): Promise<string> {
  const all = await commands();
  const list = all.map((command) => [
    toSection(`offsite ${command.name()}`, command.name()),
    plain(sentence(command.description())),
  ]);
  const shared = sharedOptions(all);
  return page(
    'Commands',
    'Every command also prints its own help: `offsite run --help`. [Exit codes](exit-codes.md) ' +
      'are the same for all.',
    table(['command', 'what it does'], list),
    `## ${sharedTitle}`,
    table(['option', 'what it does'], [...shared.values()].map(optionRow)),
    ...all.flatMap((command) => sections(command, { above: 'offsite', level: 2, shared })),
  );
}

interface Place {
  /** The words before the command's own. */
  above: string;
  /** Of the heading. */
  level: number;
  shared: ReadonlyMap<string, Option>;
}

function sections(command: Command, { above, level, shared }: Place): string[] {
  const name = `${above} ${command.name()}`;
  const options = command.options.filter(({ hidden }) => !hidden);
  const own = options.filter((option) => !shared.has(keyOf(option)));
  const others = options.filter((option) => shared.has(keyOf(option))).map(({ flags }) => nameIn(flags));
  return [
    `${'#'.repeat(level)} ${name}`,
    plain(sentence(command.description())),
    `\`\`\`text\n${name} ${command.usage()}\n\`\`\``,
    command.registeredArguments.length === 0
      ? ''
      : table(['argument', 'what it is'], command.registeredArguments.map(argumentRow)),
    own.length === 0 ? '' : table(['option', 'what it does'], own.map(optionRow)),
    others.length === 0 ? '' : `${toSection(sharedTitle, 'shared')}: ${others.map(code).join(', ')}.`,
    ...command.commands.flatMap((each) =>
      sections(each as Command, { above: name, level: Math.min(level + 1, 4), shared }),
    ),
  ];
}

/** The options that several commands have with the same description, the most common first. */
function sharedOptions(all: readonly Command[]): Map<string, Option> {
  const within = (command: Command): Command[] => [
    command,
    ...command.commands.flatMap((each) => within(each as Command)),
  ];
  const options = all.flatMap(within).flatMap((command) => command.options.filter(({ hidden }) => !hidden));
  const alike = [...Map.groupBy(options, keyOf).values()].toSorted((one, other) => other.length - one.length);
  const shared = new Map<string, Option>();
  const names = new Set<string>();
  for (const [first, ...others] of alike) {
    // Two descriptions of one name would not say whose they are.
    if (!first || others.length + 1 < fewestShared || names.has(nameIn(first.flags))) continue;
    names.add(nameIn(first.flags));
    shared.set(keyOf(first), first);
  }
  return shared;
}

function keyOf(option: Option): string {
  return optionRow(option).join(' ');
}

/** `--parallel` of `-p, --parallel <levels>`. */
function nameIn(flags: string): string {
  return /--[\w-]+/.exec(flags)?.[0] ?? flags;
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
