import { basename } from 'node:path';
import { visibleAnswers } from '../bounds/sandbox.ts';

/** Lines of an answer that stand in no other file by chance. Who has them can read it there. */
export interface AnswerPart {
  /** Each as {@link tellingLines} gives it, in order. */
  lines: string[];
  /** A text that is in each file with these lines, whatever its indentation: to search for first. */
  key: string;
  /** Set if other lines may stand between them. */
  gaps?: true | undefined;
  /** How much a line must say. */
  of: Telling;
  /** A file of this name may be the old version, with more lines. */
  except?: string | undefined;
  /** Input of the case may have them too: what is expected may be a part of it. */
  doubtful?: true | undefined;
}

/** `commands`: projects use them in their own scripts and documents too. `data`: each line counts. */
type Telling = 'code' | 'commands' | 'data';

const plain: Record<Telling, RegExp> = {
  code: /^([\w\s./,:;-]*|(import|from|use|using|export|const|var)\b.*\b(from|import|require|use|using)\b.*|#include .*)$/,
  commands: /^[\w\s./,:;&|@"'=-]*$/,
  data: /^\W*$/,
};

interface Line {
  text: string;
  isComment: boolean;
  /** A piece of the line as it is, for {@link AnswerPart.key}. */
  piece: string;
}

/**
 * The lines of a text that say something: without blanks, marks of comments, quotes and patches, and without
 * words that stand in any file.
 */
export function tellingLines(text: string, of: Telling): Line[] {
  return text.split('\n').flatMap((raw): Line[] => {
    const line = raw.trim().replaceAll(/\s+/g, ' ');
    const piece =
      raw
        .trim()
        .split(/\s\s+|\t/)
        .toSorted(byLength)[0] ?? '';
    if (of === 'data') return plain.data.test(line) ? [] : [{ text: line, isComment: false, piece }];
    const said = line.replace(/^((\/\/|\/\*+|--|[#>$|*+;-])\s*)+/, '');
    if (plain[of].test(said) || !/\w{3}/.test(said)) return [];
    return [{ text: said, isComment: /^(#|\/\/|\/\*|--|\*|;)/.test(line), piece }];
  });
}

/** Whether a file has the lines of a part: one after the other, but for comments. */
export function hasPart(lines: readonly Line[], { lines: wanted, gaps }: AnswerPart): boolean {
  const follows = (start: number): boolean => {
    let found = 0;
    for (let index = start; index < lines.length && found < wanted.length; index += 1) {
      const line = lines[index];
      if (line?.text === wanted[found]) found += 1;
      else if (!gaps && line?.isComment !== true) return false;
    }
    return found === wanted.length;
  };
  return lines.some(({ text }, index) => text === wanted[0] && follows(index));
}

/**
 * What stands in a workspace that has a script of a solution: itself, the files that it writes, and what a
 * patch in it adds.
 */
export function partsOfScript(script: string, of: Telling = 'code'): AnswerPart[] {
  const patch = partsOfPatch(script);
  return [...partOf(script, { of, least: of === 'code' ? 20 : 40 }), ...patch, ...writtenBy(script)];
}

/** What stands in a workspace that has a file which solves or grades. `of`: its lines, if it is a script. */
export function partsOfFile(path: string, content: Buffer, of: Telling = 'commands'): AnswerPart[] {
  if (content.length > visibleAnswers.bytes.text || content.includes(0)) return [];
  const text = content.toString('utf8');
  const name = basename(path);
  if (/\.(patch|diff)$/.test(name)) return partsOfPatch(text);
  if (/\.(ba)?sh$/.test(name) || text.startsWith('#!')) return partsOfScript(text, of);
  if (codeEndings.test(name)) return partOf(text, { of: 'code', least: 60, except: name });
  return partOf(text, { of: 'data', least: 40, doubtful: true });
}

const codeEndings =
  /\.(c|cc|cpp|cs|cjs|ex|exs|go|h|hpp|hs|java|jl|js|jsx|kt|lua|m|mjs|ml|php|pl|py|r|rb|rs|scala|sql|swift|ts|tsx|vue|zig)$/i;

/** The bodies of here-documents. */
function writtenBy(script: string): AnswerPart[] {
  const bodies = script.matchAll(/^(.*<<-?\s*\\?(["']?)(\w+)\2.*)\n([\s\S]*?)\n\s*\3\s*$/gm);
  return [...bodies].flatMap(([, command = '', , , body = '']) => {
    if (partsOfPatch(body).length > 0) return [];
    const [, path] = />>?\s*["']?([^\s"'<>|&;]+)/.exec(command) ?? [];
    return partOf(body, { of: 'code', least: 60, except: path && basename(path) });
  });
}

/**
 * The patch itself, what each file has after it where it changes, and all that it adds to a file. What it
 * only moves or indents is in the file before it, too.
 */
function partsOfPatch(patch: string): AnswerPart[] {
  if (!/^@@ .*@@/m.test(patch)) return [];
  const all = patch.split('\n');
  const saidIn = (lines: readonly string[], mark: string) =>
    lines.flatMap((line) =>
      line.startsWith(mark) && !line.startsWith(mark.repeat(3))
        ? tellingLines(line.slice(1), 'code').flatMap(({ text, isComment }) => (isComment ? [] : [text]))
        : [],
    );
  const removed = new Set(saidIn(all, '-'));
  const files = patch.split(/^(?=diff --git |--- [^\n]*\n\+\+\+ )/m);
  const ofFiles = files.flatMap((file) => {
    const [, ...hunks] = file.split(/^@@ .*@@.*\n/m);
    const addedBy = (lines: readonly string[]) => saidIn(lines, '+').filter((text) => !removed.has(text));
    const changed = hunks.flatMap((hunk): AnswerPart[] => {
      const lines = hunk.split('\n').filter((line) => /^[ +]/.test(line));
      const keys = addedBy(lines);
      if (keys.length === 0) return [];
      const text = lines.map((line) => line.slice(1)).join('\n');
      // One added line is no more than what it stands between.
      return partOf(text, { of: 'code', least: keys.length > 1 ? 60 : 80, fewest: 3, keys });
    });
    const added = addedBy(hunks.join('').split('\n'));
    return [...changed, ...partOf(added.join('\n'), { of: 'code', least: 100, fewest: 4, gaps: true })];
  });
  return [...partOf(patch, { of: 'data', least: 40 }), ...ofFiles];
}

const byLength = (one: string, other: string) => other.length - one.length;

interface Wanted extends Pick<AnswerPart, 'of' | 'gaps' | 'except' | 'doubtful'> {
  /** Characters of all lines. */
  least: number;
  /** Lines. Default: 1. */
  fewest?: number;
  /** The lines that the key may be of. Default: any. */
  keys?: readonly string[];
}

function partOf(text: string, { least, fewest = 1, keys, of, ...rest }: Wanted): AnswerPart[] {
  const said = tellingLines(text, of).filter(({ isComment }) => !isComment);
  const lines = said.map(({ text }) => text);
  const pieces = said.flatMap(({ text, piece }) => (!keys || keys.includes(text) ? [piece] : []));
  const [key = ''] = pieces.toSorted(byLength);
  if (lines.length < fewest || lines.join('').length < least || key.length < 8) return [];
  return [{ lines, key: key.slice(0, 100), of, ...rest }];
}
