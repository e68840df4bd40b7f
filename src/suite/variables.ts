import { z } from 'zod';
import { inputError } from '../base/offsite-error.ts';
import { expandedTexts } from '../bounds/suite.ts';

/**
 * A case's variables: they replace `{{name}}` in its texts, and they are environment variables in its
 * scripts.
 */

export type Variables = Record<string, unknown>;

const reference = /(\\)?\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}/g;

/**
 * Names that a variable must not have in the environment, because they decide how programs run or belong to
 * Offsite.
 */
const reservedNames = /^(PATH|HOME|SHELL|USER|PWD|IFS|ENV|BASH_.*|LD_.*|NODE_OPTIONS|PYTHONPATH|OFFSITE_.*)$/;

const expandedTextLimit = expandedTexts.bytes.text;

/**
 * Replaces each `{{name}}` by the value of that variable. `\{{name}}` stands for the characters `{{name}}`.
 * Values that are not strings are written as JSON. An unknown name is kept unchanged, or passed to
 * `unknownName` with its offset in the text. If the result would be longer than {@link expandedTexts} allows,
 * throws an `input` error before it builds the result.
 */
export function expandVariables(
  text: string,
  variables: Variables,
  unknownName: 'keep' | ((name: string, offset: number) => void),
): string {
  const parts: string[] = [];
  let length = 0;
  let hasVariable = false;
  for (const { part, name, offset } of expandedParts(text, variables, unknownName)) {
    length += part.length;
    hasVariable ||= name !== undefined;
    if (length > expandedTextLimit) {
      const line = text.slice(0, offset).split('\n').length;
      throw inputError(
        'EXPANDED_TEXT_TOO_LONG',
        hasVariable
          ? `a text has more than ${expandedTextLimit} characters after its variables are replaced: ` +
              `it exceeds the limit ${name === undefined ? 'after' : `at {{${name}}} in`} line ${line}`
          : `a text has more than ${expandedTextLimit} characters, without its variables`,
        {
          hint: hasVariable
            ? 'Shorten the variable, use it less often, or put the content into a file of the workspace.'
            : 'Put the content into a file of the workspace.',
        },
      );
    }
    parts.push(part);
  }
  return parts.join('');
}

/** The text in order, each value as a part of its own. Equal values are one string. */
function* expandedParts(
  text: string,
  variables: Variables,
  unknownName: Parameters<typeof expandVariables>[2] = 'keep',
): Generator<{ part: string; offset: number; name?: string }> {
  const values = new Map<string, string>();
  let from = 0;
  for (const { 0: match, 1: escaped, 2: name = '', index } of text.matchAll(reference)) {
    const isKnown = Object.hasOwn(variables, name);
    if (!escaped && !isKnown && unknownName !== 'keep') unknownName(name, index);
    if (!escaped && !isKnown) continue;
    yield { part: text.slice(from, index), offset: from };
    from = index + match.length;
    if (escaped) yield { part: match.slice(1), offset: index };
    else {
      const part = values.get(name) ?? valueText(variables[name]);
      values.set(name, part);
      yield { part, offset: index, name };
    }
  }
  yield { part: text.slice(from), offset: from };
}

/** The names that a text refers to. */
export function namesIn(text: string): Set<string> {
  const found = [...text.matchAll(reference)];
  return new Set(found.flatMap(([, escaped, name = '']) => (escaped ? [] : [name])));
}

/** The names in a text, as it has them, one after the other. */
export function referencesIn(text: string): string {
  return text.match(reference)?.join('\n') ?? '';
}

/** A text without any `{{name}}`. */
export function withoutReferences(text: string): string {
  return text.replace(reference, ' ');
}

/**
 * The text that {@link expandVariables} makes, if it keeps unknown names, in pieces: the whole text may
 * be thousands of times longer than what it is made of. A piece may end within a surrogate pair.
 *
 * @param pieceCharacters how long a piece is, except the last
 */
export function* expandedPieces(
  text: string,
  variables: Variables,
  pieceCharacters: number,
): Generator<string> {
  let piece = '';
  for (const { part } of expandedParts(text, variables)) {
    for (let at = 0; at < part.length; ) {
      const end = Math.min(part.length, at + pieceCharacters - piece.length);
      piece += part.slice(at, end);
      at = end;
      if (piece.length < pieceCharacters) continue;
      yield piece;
      piece = '';
    }
  }
  if (piece !== '') yield piece;
}

/**
 * How often each name is in a text. Gives the length of the text with any variables without reading it again.
 */
export interface CountedNames {
  /** Characters of the text. */
  length: number;
  names: ReadonlyMap<string, { times: number; characters: number }>;
}

/** Names that are counted in some milliseconds. */
const namesAtATime = 10_000;

/** Counts names, with places at which others may be served before it continues. */
export function* countNamesInSteps(text: string): Generator<void, CountedNames> {
  const names = new Map<string, { times: number; characters: number }>();
  let found = 0;
  for (const { 0: match, 1: escaped, 2: name = '' } of text.matchAll(reference)) {
    found += 1;
    if (found % namesAtATime === 0) yield;
    if (escaped) continue;
    const { times, characters } = names.get(name) ?? { times: 0, characters: 0 };
    names.set(name, { times: times + 1, characters: characters + match.length });
  }
  return { length: text.length, names };
}

/**
 * How many characters {@link expandVariables} makes of a text that keeps unknown names. An escaped name
 * counts with its backslash.
 */
export function expandedLength({ length, names }: CountedNames, variables: Variables): number {
  return Object.entries(variables).reduce((sum, [name, value]) => {
    const found = names.get(name);
    return found ? sum + found.times * valueText(value).length - found.characters : sum;
  }, length);
}

/**
 * The variables as environment variables, without those whose names are not valid there, and those that are
 * too long for it. Values that are not strings are written as JSON.
 */
export function variablesAsEnvironment(variables: Variables): Record<string, string> {
  const usable = Object.entries(variables).filter(
    ([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !isReservedName(name),
  );
  const texts = usable.map(([name, value]): [string, string] => [name, valueText(value)]);
  return Object.fromEntries(texts.filter(([name, text]) => fitsEnvironment(name, text)));
}

/** Bytes that Linux takes of one `NAME=value`, with the zero after it: MAX_ARG_STRLEN. */
const longestVariable = 128 * 1024;

/** Whether an environment can have a variable. A program with a longer one does not start. */
export function fitsEnvironment(name: string, value: unknown): boolean {
  return Buffer.byteLength(name) + Buffer.byteLength(valueText(value)) + 2 <= longestVariable;
}

/** Said of a variable that an environment cannot have. */
export const tooLongForEnvironment =
  'is too long for an environment variable, which has at most 128 KiB: put it into a file of the workspace';

/** For the schema of environment variables. */
export function refuseLongVariables(env: Record<string, string>, { addIssue }: z.RefinementCtx): void {
  for (const [name, value] of Object.entries(env))
    if (!fitsEnvironment(name, value))
      addIssue({ code: 'custom', path: [name], message: tooLongForEnvironment });
}

export function isReservedName(name: string): boolean {
  return reservedNames.test(name);
}

function valueText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/** What `offsite case add` writes where a person has to write. A prompt that contains it is never sent. */
export const promptPlaceholder = 'TODO(offsite): say what the agent shall do';

export function isUnwritten(value: unknown): boolean {
  return typeof value === 'string' && value.includes('TODO(offsite)');
}

/** A run of characters as keys have it, and names of variables do not. */
const keyLike = /[A-Za-z\d]{32}|(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{16}/;

/** Whether a text may be a key, whatever it was meant to be. Then it must not be printed. */
export function mayBeKey(text: string): boolean {
  return keyLike.test(text) || /^(sk|gsk|hf|pk|ghp|xai)[-_]./i.test(text);
}

/** What is wrong with a variable's name, without repeating it: it may be a key. Undefined if nothing is. */
export function variableProblem(given: string): string | undefined {
  if (/^[A-Za-z_]\w*$/.test(given) && !mayBeKey(given)) return undefined;
  return 'expected the name of an environment variable such as MY_API_KEY, never the key itself';
}

/** The name of the variable that holds a secret. */
export const VariableName = z.string().check(({ value, issues }) => {
  const message = variableProblem(value);
  // The value stays out of the message.
  if (message !== undefined) issues.push({ code: 'custom', input: undefined, message });
});

/**
 * Finds what a script of a run reads that nobody gives it, when the variables of its case are not known: an
 * empty name can let a check pass. Rules for the usual forms of bash, and of other languages' environment.
 */

/** Names that a shell or a sandbox has by itself. */
const given =
  /^(_|BASH\w*|PATH|HOME|USER|LOGNAME|SHELL|PWD|OLDPWD|IFS|S?RANDOM|SECONDS|EPOCH\w+|LINENO|FUNCNAME|PIPESTATUS|REPLY|OPT(ARG|IND|ERR)|E?UID|PPID|GROUPS|HOST(NAME|TYPE)|MACHTYPE|OSTYPE|SHLVL|TERM|COLUMNS|LINES|LANG|LC_\w+|TMPDIR|DIRSTACK|MAPFILE|COPROC|PS\d|CI|DEBIAN_FRONTEND|OFFSITE_\w+|\w+_proxy|\w+_PROXY)$/;

/** `$name` and `${name}`; not `${name:-default}`, which says what holds without it. */
const readByShell = /(?<!\\)\$(?:([A-Za-z_]\w*)|\{[!#]?([A-Za-z_]\w*)(?!\w|:?[-=+]))/g;

/** `os.environ["name"]`, `getenv('name')`, `process.env.name`, `printenv name`. */
const readElsewhere =
  /(?:environ(?:\.get)?\s*[[(]|getenv\s*\(|process\.env\s*[.[]|\bprintenv )\s*["']?([A-Za-z_]\w*)/gi;

/** `name=`, `((name++))` and the commands of bash that set the names after them. */
const assigned = /(?<![\w$])([A-Za-z_]\w*)(?:\[[^\]]*\])?(?:[-+*/]?=(?!=)|\+\+|--)/g;
const setting =
  /\b(?:for|select|read|mapfile|readarray|getopts|local|declare|typeset|export|readonly|printf -v)\b([^;\n|&]*)/g;

/** May set any name. */
const settingAnything = /(?:^|[\s;&|(])(?:source|\.|eval)\s+\S/m;

/** The names that a script reads, although nothing that is known here sets them. */
export function unsetNames(script: string, known: readonly string[] = []): string[] {
  const shell = expandedByShell(script);
  const set = new Set(known);
  for (const [, name = ''] of shell.matchAll(assigned)) set.add(name);
  for (const [, words = ''] of shell.matchAll(setting)) {
    for (const [word] of words.matchAll(/(?<![\w$])[A-Za-z_]\w*/g)) set.add(word);
  }
  const inShell = settingAnything.test(shell) ? [] : [...shell.matchAll(readByShell)];
  const read = [...inShell, ...script.matchAll(readElsewhere)].map(([, one, other]) => one ?? other ?? '');
  return [...new Set(read)].filter((name) => !set.has(name) && !given.test(name));
}

/** Whether the module of a validator uses the variables of its case. */
export function usesVariables(module: string): boolean {
  return /\bvariables\b\s*(?:[,}.[]|\?\.)/.test(module.replace(/^\s*(?:\/\/|\*|\/\*).*$/gm, ''));
}

/**
 * A script without comments, and without texts that bash does not expand. What `-c` takes is expanded by
 * another shell.
 */
function expandedByShell(script: string): string {
  const withoutTexts = script.replace(
    /^(.*)<<-?\s*(['"\\])(\w+).*\n[\s\S]*?^\s*\3$/gm,
    (text, before: string) => (/\b(?:ba|da)?sh\b/.test(before) ? text : before),
  );
  return withoutTexts.replace(
    /\\[\s\S]|(?<=^|[\s;&|(])#.*|(-c\s+)?'[^']*'|"(?:\\[\s\S]|[^"\\])*"/gm,
    (part, option?: string) => {
      if (option !== undefined || (part.startsWith('"') && !part.includes('$('))) return part;
      return part.startsWith('"') ? part.replace(/(?<!-c\s+)'[^']*'/g, ' ') : ' ';
    },
  );
}
