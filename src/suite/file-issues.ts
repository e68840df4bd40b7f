import { OffsiteError } from '../offsite-error.ts';

/** A problem in a file, with its position. Lines and columns count from 1. */
export interface FileIssue {
  file: string;
  line: number;
  column: number;
  /** The path in the document: `cases[2].validator.file`. Empty for the document itself. */
  path: string;
  message: string;
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
    const printed = [...new Set(sorted.map(printFileIssue))];
    super(printed.join('\n'), { code: 'BAD_FILE', kind: 'input' });
    this.issues = sorted;
    this.printed = printed;
  }
}

/** Line and column of an offset in a text, both from 1. */
export function positionInText(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  const line = before.split('\n').length;
  return { line, column: offset - before.lastIndexOf('\n') };
}
