import { z } from 'zod';
import { harnessLines } from '../bounds/sandbox.ts';
import { LineReader } from '../line-reader.ts';
import { DocumentTooHeavy, longestDocument, parseCheckedJson } from '../parse-json.ts';
import type { TurnRecord } from './turn-record.ts';

/**
 * Puts what one line of a CLI's JSON stream says into the record; `at` is when it came, in epoch
 * milliseconds. Types it does not know are passed over, as a newer version may have added them; it throws
 * where a line of a known type has not the known shape.
 */
export type LineTaker = (line: Record<string, unknown>, at: number) => void;

export interface CliStream {
  push(chunk: Buffer): void;
  end(): void;
  /** Why what was read cannot be trusted: the first line that no known version of the CLI prints. */
  readonly trouble: string | undefined;
  /**
   * Whether it printed a line that is too large to be read. CLIs keep their lines short; what the agent
   * prints, they pass on.
   */
  readonly isOverlarge: boolean;
}

/** The type of the line that the launcher prints first. */
export const VERSION_LINE = 'offsite/version';

const VersionLine = z.object({ version: z.string() });

/**
 * Reads a CLI's stream of one JSON object a line. `skips`: the beginnings of lines that are not even parsed.
 * Never throws, whatever comes.
 */
export function cliStream(
  record: TurnRecord,
  take: LineTaker,
  now: () => number,
  skips: readonly string[] = [],
): CliStream {
  let trouble: string | undefined;
  let isOverlarge = false;
  let notes = 0;
  const drop = () => {
    isOverlarge = true;
    record.isWhole = false;
  };
  const strange = (line: string, at: number) => {
    notes += 1;
    if (notes <= harnessLines.count.notes) record.note(excerpt(line), at);
  };
  const reader = new LineReader(
    (line) => {
      if (line.trim() === '' || skips.some((start) => line.startsWith(start))) return;
      const at = now();
      const value = parsed(line);
      if (value === 'too heavy') return drop();
      if (value === undefined) return strange(line, at);
      try {
        if (value.type !== VERSION_LINE) take(value, at);
        else record.version = VersionLine.parse(value).version || undefined;
      } catch (error) {
        if (!(error instanceof z.ZodError)) throw error;
        trouble ??= excerpt(
          `a line of type ${JSON.stringify(value.type)} is not of the known shape: ${z.prettifyError(error)}`,
        );
        strange(line, at);
      }
    },
    drop,
    Math.min(harnessLines.bytes.line, longestDocument()),
  );
  return {
    push: (chunk) => reader.push(chunk),
    end: () => reader.end(),
    get trouble() {
      return trouble;
    },
    get isOverlarge() {
      return isOverlarge;
    },
  };
}

function parsed(line: string): Record<string, unknown> | 'too heavy' | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return parseCheckedJson(line) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    if (error instanceof DocumentTooHeavy) return 'too heavy';
    throw error;
  }
}

function excerpt(line: string): string {
  return line.length <= harnessLines.bytes.note ? line : `${line.slice(0, harnessLines.bytes.note)} …`;
}
