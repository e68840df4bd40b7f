import { OffsiteError } from '../offsite-error.ts';

/** One thing wrong in a file, at its place. Lines and columns count from 1. */
export interface FileIssue {
  file: string;
  line: number;
  column: number;
  /** Where in the document: `cases[2].validator.file`; empty for the document itself. */
  path: string;
  message: string;
}

function printFileIssue({ file, line, column, path, message }: FileIssue): string {
  return `${file}:${line}:${column}: ${path === '' ? '' : `${path}: `}${message}`;
}

/** All that is wrong with the user's files at once, one line each, in the files' order. */
export class BadFile extends OffsiteError {
  override readonly name = 'BadFile';
  readonly issues: readonly FileIssue[];
  /** Each as a line of its own. */
  readonly printed: readonly string[];

  constructor(issues: readonly FileIssue[]) {
    const sorted = issues.toSorted(
      (a, b) => a.file.localeCompare(b.file) || a.line - b.line || a.column - b.column,
    );
    const printed = sorted.map(printFileIssue);
    super(printed.join('\n'), { code: 'BAD_FILE', kind: 'input' });
    this.issues = sorted;
    this.printed = printed;
  }
}

/** Line and column of an offset in a text, both from 1. */
export function placeInText(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  const line = before.split('\n').length;
  return { line, column: offset - before.lastIndexOf('\n') };
}
