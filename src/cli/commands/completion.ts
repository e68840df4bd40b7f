import { Argument, Command } from '@commander-js/extra-typings';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { Config } from '../../suite/config-file.ts';
import { findConfig } from '../../suite/find-config.ts';
import { ours } from '../../text/printable.ts';
import type { CommandTree, OptionShape } from '../command-tree.ts';
import { newName } from '../old-names.ts';
import { openTerminal } from '../terminal.ts';

export function completionCommand() {
  return new Command('completion')
    .description('print a script with which a shell completes commands, options and names')
    .addArgument(new Argument('<shell>', 'your shell').choices(shells))
    .action((shell) => openTerminal().out.print(ours(completionScripts[shell])));
}

/** The command that completion scripts call. It prints nothing that a shell takes for more than a word. */
export function completeCommand(commandTrees: () => Promise<readonly CommandTree[]>) {
  return new Command('complete')
    .description('print what may come next on a command line, for the scripts of `offsite completion`')
    .argument('<words...>', 'what is written after `offsite`; the last word may be empty')
    .action(async (words) => {
      const trees = await commandTrees();
      const found = await candidatesFor(renamed(words, trees), trees, machineValues(process.env));
      const lines =
        found.kind === 'files'
          ? ['files']
          : ['words', ...found.words.map(({ value, description }) => `${value}\t${oneLine(description)}`)];
      openTerminal().out.print(ours(lines.join('\n')));
    });
}

/** A line with a former name of a command, as if it had the new one. */
function renamed(words: readonly string[], trees: readonly CommandTree[]): readonly string[] {
  const name = trees.some((tree) => tree.name === words[0]) ? undefined : newName(words);
  return name === undefined ? words : [...name.split(' '), ...words.slice(1)];
}

/** A description on one line, in plain ASCII. Descriptions contain names from others, with any characters. */
function oneLine(description: string): string {
  return description.replaceAll(/[^\x20-\x7e]+/g, ' ').slice(0, 100);
}

const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

/**
 * The completion script of each shell. The scripts ask `offsite complete` for what may come next, so they
 * stay correct when Offsite is updated. The first line of the answer is `files` or `words`, each further line
 * is a word, a tab and a description. Nothing of the answer is evaluated.
 */
const completionScripts: Readonly<Record<Shell, string>> = {
  bash: `# Completion of offsite for bash. In ~/.bashrc: eval "$(offsite completion bash)"
_offsite() {
  local kind word rest
  COMPREPLY=()
  {
    IFS= read -r kind
    while IFS=$'\\t' read -r word rest; do COMPREPLY+=("$word"); done
  } < <(command offsite complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
  if [[ $kind == files ]]; then compopt -o default 2> /dev/null; fi
}
complete -F _offsite offsite`,
  zsh: `#compdef offsite
# Completion of offsite for zsh. In ~/.zshrc, after compinit: eval "$(offsite completion zsh)"
_offsite() {
  local -a answer words_
  local line
  answer=("\${(@f)$(command offsite complete -- "\${(@)words[2,CURRENT]}" 2> /dev/null)}")
  if [[ $answer[1] == files ]]; then
    _files
    return
  fi
  for line in "\${(@)answer[2,-1]}"; do
    words_+=("\${line%%$'\\t'*}:\${line#*$'\\t'}")
  done
  _describe offsite words_
}
if [[ $funcstack[1] == _offsite ]]; then _offsite "$@"; else compdef _offsite offsite; fi`,
  fish: `# Completion of offsite for fish. In ~/.config/fish/config.fish: offsite completion fish | source
function __offsite_complete
    set -l words (commandline -opc) "$(commandline -ct)"
    set -l answer (command offsite complete -- $words[2..] 2> /dev/null)
    if test "$answer[1]" = files
        __fish_complete_path "$(commandline -ct)"
    else
        string join \\n -- $answer[2..]
    end
end
complete -c offsite -f -a '(__offsite_complete)'`,
};

/**
 * Values on this machine: batches of the data folder, and names in the `offsite.yaml` that a command would
 * read. The modules that read them are loaded only for names that have such values: a shell waits for this.
 */
function machineValues(env: NodeJS.ProcessEnv): ValuesOf {
  return async (name, command) => {
    if (name === '--profile') return namesOf((await configOf(env)).profiles);
    if (name === '--sandbox') return namesOf({ local: undefined, ...(await configOf(env)).sandboxes });
    if (name === 'name' && modelCommands.has(command.join(' '))) return namesOf((await configOf(env)).models);
    if (!batchNames.has(name)) return undefined;
    const { dataFolderOf } = await import('../../api/data-folder.ts');
    const { recentBatches } = await import('../../ledger/recent-batches.ts');
    const isThere = env.OFFSITE_CONFIG !== undefined || findConfig({ env }) !== undefined;
    const config = isThere ? await configOf(env) : {};
    const dataFolder = dataFolderOf(undefined, config, env);
    return recentBatches(dataFolder, shown).map(({ id, suite }) => ({ value: id, description: suite }));
  };
}

/** Commands whose argument names a configured model. */
const modelCommands = new Set(['models check', 'models bench']);

/** The configuration; the defaults if the file is invalid, as it often is while somebody edits it. */
async function configOf(env: NodeJS.ProcessEnv): Promise<Config> {
  const { ConfigFile } = await import('../../suite/config-file.ts');
  const { loadConfig } = await import('../../suite/load-config.ts');
  try {
    return loadConfig({ env });
  } catch (error) {
    if (error instanceof OffsiteError) return { ...ConfigFile.parse({}), file: undefined };
    throw error;
  }
}

/** How many batches are offered. */
const shown = 20;

/** Arguments and placeholders of options that take the id of a batch. */
const batchNames = new Set(['batch', 'what', 'a', 'b']);

function namesOf(map: Readonly<Record<string, unknown>>): Word[] {
  return named(Object.keys(map));
}

/** What may come next on a command line: words, or the name of a file. */
type Candidates = { kind: 'words'; words: Word[] } | { kind: 'files' };

interface Word {
  value: string;
  description: string;
}

/**
 * Values that depend on this machine. Undefined if the name has no such values.
 *
 * @param name of an argument, such as `batch`, or of an option, such as `--profile`
 * @param command the names that lead to the command
 */
type ValuesOf = (name: string, command: readonly string[]) => Promise<Word[] | undefined>;

/**
 * What may come at the end of a command line.
 *
 * @param words all words after `offsite`, the last of which is being written and may be empty
 * @param top the commands that a first word may name
 */
async function candidatesFor(
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
  const values = (names: string[], choices: readonly string[] | undefined, begun = current) =>
    valuesFor(names, choices, begun, (name) => valuesOf(name, path));
  if (open && !(open.isVariadic && current.startsWith('-')))
    return values([open.long, open.value ?? ''], open.choices, current === '=' ? '' : current);
  if (current.startsWith('-') && !afterDashes)
    return starting(current, [
      ...options.map(({ long, description }) => ({ value: long, description })),
      { value: '--help', description: 'display help for command' },
    ]);
  const inner = positions === 0 ? command.commands : [];
  const argument = argumentAt(command, positions);
  const found = argument ? await values([nameIn(argument.term)], argument.choices) : noWords;
  if (found.kind === 'files') return found;
  const names = inner.map(({ name, description }) => ({ value: name, description }));
  return starting(current, [...names, ...found.words]);
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
    names,
    description,
    choices,
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
