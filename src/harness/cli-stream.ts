import { z } from 'zod';
import { LineReader } from '../base/line-reader.ts';
import { DocumentTooDeep, DocumentTooHeavy, longestDocument, parseCheckedJson } from '../base/parse-json.ts';
import { harnessLines } from '../bounds/sandbox.ts';
import type { TurnRecord, TurnStatus } from './turn-record.ts';

/**
 * Adds the content of one line of a CLI's JSON stream to the record. `at` is the time of its arrival, in
 * epoch milliseconds. Ignores unknown types, which a newer version may have added. Throws if a line of a
 * known type does not have the known shape.
 */
export type LineTaker = (line: Record<string, unknown>, at: number) => void;

/** How the stream of one program is read. */
export interface StreamReader {
  takerFor(record: TurnRecord): LineTaker;
  /** Lines that begin with one of these are not parsed. */
  skips?: readonly string[];
  /** The status that an exit code stands for, if the stream did not say how the turn ended. */
  statusOfExit?(exitCode: number, stderr: string): TurnStatus | undefined;
  /** Whether its stderr is a log, of which only the beginning and the end are worth keeping. */
  logsToStderr?: boolean;
}

export interface CliStream {
  push(chunk: Buffer): void;
  end(): void;
  /** Why the stream cannot be trusted: the first line that no known version of the CLI prints. */
  readonly problem: string | undefined;
  /**
   * Why a line of the CLI was not read; undefined if each was. CLIs keep their own lines short and flat, but
   * they pass on what the agent prints.
   */
  readonly unread: Unread | undefined;
}

/** What is wrong with a line that is not read. */
export type Unread = 'too large' | 'nested too deep';

/** The type of the line that the launcher prints first. */
export const versionLine = 'offsite/version';

const VersionLine = z.object({ version: z.string() });

/**
 * Reads a CLI's stream of one JSON object per line. Whatever the CLI prints, it throws only if `take` has a
 * defect.
 *
 * @param skips lines that begin with one of these are not parsed
 */
export function cliStream(
  record: TurnRecord,
  take: LineTaker,
  now: () => number,
  skips: readonly string[] = [],
): CliStream {
  let problem: string | undefined;
  let unread: Unread | undefined;
  let notes = 0;
  const dropLine = (why: Unread) => {
    unread ??= why;
    record.isWhole = false;
  };
  const noteLine = (line: string, at: number) => {
    notes += 1;
    if (notes <= harnessLines.count.notes) record.note(excerpt(line), at);
  };
  const reader = new LineReader(
    (line) => {
      if (line.trim() === '' || skips.some((start) => line.startsWith(start))) return;
      const at = now();
      const value = parsedLine(line);
      if (typeof value === 'string') return dropLine(value);
      if (value === undefined) return noteLine(line, at);
      try {
        if (value.type !== versionLine) take(value, at);
        else record.version = VersionLine.parse(value).version || undefined;
      } catch (error) {
        if (!(error instanceof z.ZodError)) throw error;
        const type = JSON.stringify(value.type);
        problem ??= excerpt(
          `a line of type ${type} does not have the known shape: ${z.prettifyError(error)}`,
        );
        noteLine(line, at);
      }
    },
    () => dropLine('too large'),
    Math.min(harnessLines.bytes.line, longestDocument()),
  );
  return {
    push: (chunk) => reader.push(chunk),
    end: () => reader.end(),
    get problem() {
      return problem;
    },
    get unread() {
      return unread;
    },
  };
}

/** The object of a line; undefined if it is not JSON, or why it is not read. */
export function parsedLine(line: string): Record<string, unknown> | Unread | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return parseCheckedJson(line) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    if (error instanceof DocumentTooDeep) return 'nested too deep';
    if (error instanceof DocumentTooHeavy) return 'too large';
    throw error;
  }
}

/** A line as it is shown in a note. */
export function excerpt(line: string): string {
  return line.length <= harnessLines.bytes.note ? line : `${beginningOf(line, harnessLines.bytes.note)} …`;
}

/**
 * The first characters of a text. They are a copy: a part of a string keeps the whole string in memory.
 */
export function beginningOf(text: string, characters: number): string {
  return text.length <= characters
    ? text
    : Buffer.from(text.slice(0, characters), 'utf16le').toString('utf16le');
}
