import { inputError, OffsiteError } from '../base/offsite-error.ts';

/** A problem in a file, with its position. Lines and columns count from 1. */
export interface FileIssue {
  file: string;
  line: number;
  column: number;
  /** The path in the document: `cases[2].validator.file`. Empty for the document itself. */
  path: string;
  message: string;
}

/** A problem of a whole file, or at a place in it that has no path. */
export function issueIn(file: string, message: string, { line = 1, column = 1 } = {}): FileIssue {
  return { file, line, column, path: '', message };
}

/** `file:line:column: path: message`, as editors and CI logs expect. */
export function printFileIssue({ file, line, column, path, message }: FileIssue): string {
  return `${file}:${line}:${column}: ${path === '' ? '' : `${path}: `}${message}`;
}

/** All problems in the user's files at once, one line each, sorted by file and position. */
export class BadFile extends OffsiteError {
  override readonly name = 'BadFile';
  readonly issues: readonly FileIssue[];
  /** One line for each issue. */
  readonly printed: readonly string[];

  constructor(issues: readonly FileIssue[]) {
    const sorted = issues.toSorted(
      (a, b) => a.file.localeCompare(b.file) || a.line - b.line || a.column - b.column,
    );
    // Cases that share a value share its problem.
    const once = new Map(sorted.map((issue) => [printFileIssue(issue), issue]));
    const printed = [...once.keys()];
    super(printed.join('\n'), { code: 'BAD_FILE', kind: 'input' });
    this.issues = [...once.values()];
    this.printed = printed;
  }
}

/** Line and column of an offset in a text, both from 1. */
export function positionInText(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  const line = before.split('\n').length;
  return { line, column: offset - before.lastIndexOf('\n') };
}

/**
 * Why a text of a file is refused. A path, command or variable with this character is an error of the file
 * system or of the engine, which would end the whole command.
 */
export const hasNul = 'has the character NUL, which no path, command or variable can have';

/**
 * The text of a user's file. Throws `FILE_UNREADABLE`, an `input` error, if it is not UTF-8, and {@link
 * BadFile} at a character NUL.
 */
export function decodedText(file: string, content: Uint8Array): string {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch (cause) {
    throw inputError('FILE_UNREADABLE', `cannot read ${file}: it is not UTF-8`, { cause });
  }
  const offset = text.indexOf('\0');
  if (offset !== -1) throw new BadFile([issueIn(file, hasNul, positionInText(text, offset))]);
  return text;
}
