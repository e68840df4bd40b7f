import type { CommandTree, OptionShape } from '../command-tree.ts';

/** What may come next on a command line: words, or the name of a file. */
export type Candidates = { kind: 'words'; words: Word[] } | { kind: 'files' };

export interface Word {
  value: string;
  description: string;
}

/**
 * Values that depend on this machine. Undefined if the name has no such values.
 *
 * @param name of an argument, such as `batch`, or of an option, such as `--profile`
 * @param command the names that lead to the command
 */
export type ValuesOf = (name: string, command: readonly string[]) => Promise<Word[] | undefined>;

/**
 * What may come at the end of a command line.
 *
 * @param words all words after `offsite`, the last of which is being written and may be empty
 * @param top the commands that a first word may name
 */
export async function candidatesFor(
  words: readonly string[],
  top: readonly CommandTree[],
  valuesOf: ValuesOf,
): Promise<Candidates> {
  const [name = '', ...rest] = words;
  if (rest.length === 0)
    return starting(name, [...named(top.map((one) => one.name)), ...named(['--help', '--version'])]);
  const command = top.find((one) => one.name === name);
  return command ? candidatesIn(command, [name], rest, valuesOf) : noWords;
}

const noWords: Candidates = { kind: 'words', words: [] };

async function candidatesIn(
  command: CommandTree,
  path: readonly string[],
  words: readonly string[],
  valuesOf: ValuesOf,
): Promise<Candidates> {
  const current = words.at(-1) ?? '';
  const options = command.options.map(writtenOption);
  /** The option whose value comes next. */
  let open: WrittenOption | undefined;
  let positions = 0;
  let afterDashes = false;
  for (const [index, word] of words.slice(0, -1).entries()) {
    // Bash splits --option=value into three words.
    if (word === '=') continue;
    if (afterDashes) positions++;
    else if (word === '--') afterDashes = true;
    else if (word.startsWith('-')) {
      const option = word.includes('=') ? undefined : options.find(({ names }) => names.includes(word));
      open = option?.value === undefined ? undefined : option;
    } else if (open) open = open.isVariadic ? open : undefined;
    else {
      const inner = command.commands.find((one) => one.name === word);
      if (inner && positions === 0)
        return candidatesIn(inner, [...path, word], words.slice(index + 1), valuesOf);
      positions++;
    }
  }
  if (open && !(open.isVariadic && current.startsWith('-')))
    return valuesFor([open.long, open.value ?? ''], open.choices, current === '=' ? '' : current, (name) =>
      valuesOf(name, path),
    );
  if (current.startsWith('-') && !afterDashes)
    return starting(current, [
      ...options.map(({ long, description }) => ({ value: long, description })),
      { value: '--help', description: 'display help for command' },
    ]);
  const inner = positions === 0 ? command.commands : [];
  const argument = argumentAt(command, positions);
  const values = argument
    ? await valuesFor([nameIn(argument.term)], argument.choices, current, (name) => valuesOf(name, path))
    : noWords;
  if (values.kind === 'files') return values;
  return starting(current, [
    ...inner.map(({ name, description }) => ({ value: name, description })),
    ...values.words,
  ]);
}

interface WrittenOption extends Pick<OptionShape, 'description' | 'choices'> {
  /** `-c` and `--concurrency` */
  names: string[];
  long: string;
  /** The placeholder of its value: `batch` of `--compare-to <batch>`. Undefined if it takes none. */
  value: string | undefined;
  isVariadic: boolean;
}

function writtenOption({ flags, description, choices }: OptionShape): WrittenOption {
  const names = flags.split(/[ ,]+/).filter((part) => part.startsWith('-'));
  const placeholder = /[<[].*[\]>]/.exec(flags)?.[0];
  return {
    ...{ names, description, choices },
    long: names.at(-1) ?? '',
    value: placeholder === undefined ? undefined : nameIn(placeholder),
    isVariadic: isVariadic(placeholder ?? ''),
  };
}

function argumentAt({ arguments: all }: CommandTree, position: number) {
  const last = all.at(-1);
  return all[position] ?? (last && isVariadic(last.term) ? last : undefined);
}

/** `batch` of `<batch>`, `[batch]` and `<batch...>` */
function nameIn(term: string): string {
  return /[<[]([^\]>]+?)(?:\.\.\.)?[\]>]/.exec(term)?.[1] ?? '';
}

function isVariadic(term: string): boolean {
  return term.includes('...');
}

/** Names of arguments and options whose values are paths. */
const paths = new Set(['file', 'folder', 'path', 'file|url']);

async function valuesFor(
  names: readonly string[],
  choices: readonly string[] | undefined,
  current: string,
  valuesOf: (name: string) => Promise<Word[] | undefined>,
): Promise<Candidates> {
  if (choices) return starting(current, named(choices));
  if (names.some((name) => paths.has(name))) return { kind: 'files' };
  for (const name of names) {
    const values = await valuesOf(name);
    if (values) return starting(current, values);
  }
  return noWords;
}

function starting(current: string, words: readonly Word[]): Candidates {
  const fitting = words.filter(({ value }) => value.startsWith(current) && plain.test(value));
  return { kind: 'words', words: fitting };
}

/** Words without characters that a shell interprets. Other people may have chosen the ids and names. */
const plain = /^[\w@%+./-]+$/;

function named(values: readonly string[]): Word[] {
  return values.map((value) => ({ value, description: '' }));
}
