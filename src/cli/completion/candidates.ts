import type { Argument, Command, Option } from '@commander-js/extra-typings';

/** What may come next on a command line: words, or the name of a file. */
export type Candidates = { kind: 'words'; words: Word[] } | { kind: 'files' };

export interface Word {
  value: string;
  description: string;
}

/**
 * Values that depend on this machine. Undefined for none.
 *
 * @param name of an argument, such as `batch`, or of an option, such as `--profile`
 * @param command the names that lead to the command
 */
export type ValuesOf = (name: string, command: readonly string[]) => Word[] | undefined;

/**
 * What may come at the end of a command line, from the program's own tree of commands.
 *
 * @param words all words after `offsite`, the last of which is being written and may be empty
 * @param top the commands that a first word may name
 * @param load the tree of one of them
 */
export async function candidatesFor(
  words: readonly string[],
  top: readonly string[],
  load: (name: string) => Promise<Command | undefined>,
  valuesOf: ValuesOf,
): Promise<Candidates> {
  const [name = '', ...rest] = words;
  if (rest.length === 0) return starting(name, [...named(top), ...named(['--help', '--version'])]);
  const command = await load(name);
  if (!command) return noWords;
  return candidatesIn(command, [name], rest, valuesOf);
}

const noWords: Candidates = { kind: 'words', words: [] };

function candidatesIn(
  command: Command,
  path: readonly string[],
  words: readonly string[],
  valuesOf: ValuesOf,
): Candidates {
  const current = words.at(-1) ?? '';
  const options = command.options.filter(({ hidden }) => !hidden);
  /** The option whose value comes next. */
  let open: Option | undefined;
  let positions = 0;
  let afterDashes = false;
  for (const [index, word] of words.slice(0, -1).entries()) {
    // Bash splits --option=value into three words.
    if (word === '=') continue;
    if (afterDashes) positions++;
    else if (word === '--') afterDashes = true;
    else if (word.startsWith('-')) {
      const option = word.includes('=')
        ? undefined
        : options.find(({ long, short }) => word === long || word === short);
      open = option && (option.required || option.optional) ? option : undefined;
    } else if (open) open = open.variadic ? open : undefined;
    else {
      const inner = command.commands.find((one) => one.name() === word);
      if (inner && positions === 0)
        return candidatesIn(inner as Command, [...path, word], words.slice(index + 1), valuesOf);
      positions++;
    }
  }
  if (open && !(open.variadic && current.startsWith('-')))
    return valuesFor(
      [open.long ?? '', placeholderOf(open)],
      open.argChoices,
      current === '=' ? '' : current,
      (name) => valuesOf(name, path),
    );
  if (current.startsWith('-') && !afterDashes)
    return starting(current, [
      ...options.map(({ long, short, description }) => ({ value: long ?? short ?? '', description })),
      { value: '--help', description: 'display help for command' },
    ]);
  const inner = positions === 0 ? command.commands : [];
  const argument = argumentAt(command.registeredArguments, positions);
  const values = argument
    ? valuesFor([argument.name()], argument.argChoices, current, (name) => valuesOf(name, path))
    : noWords;
  if (values.kind === 'files') return values;
  return starting(current, [
    ...inner.map((one) => ({ value: one.name(), description: one.description() })),
    ...values.words,
  ]);
}

function argumentAt(all: readonly Argument[], position: number): Argument | undefined {
  return all[position] ?? (all.at(-1)?.variadic ? all.at(-1) : undefined);
}

/** `batch` of `--compare-to <batch>` */
function placeholderOf({ flags }: Option): string {
  return /[<[]([^\]>]+?)(?:\.\.\.)?[\]>]/.exec(flags)?.[1] ?? '';
}

/** Names of arguments and options whose values are paths. */
const paths = new Set(['file', 'folder', 'path', 'file|url']);

function valuesFor(
  names: readonly string[],
  choices: readonly string[] | undefined,
  current: string,
  valuesOf: (name: string) => Word[] | undefined,
): Candidates {
  if (choices) return starting(current, named(choices));
  if (names.some((name) => paths.has(name))) return { kind: 'files' };
  const values = names.map(valuesOf).find((found) => found !== undefined);
  return starting(current, values ?? []);
}

function starting(current: string, words: readonly Word[]): Candidates {
  const fitting = words.filter(({ value }) => value.startsWith(current) && plain.test(value));
  return { kind: 'words', words: fitting };
}

/** A shell gets only what means nothing to it. Others may choose ids and names. */
const plain = /^[\w@%+./-]+$/;

function named(values: readonly string[]): Word[] {
  return values.map((value) => ({ value, description: '' }));
}
