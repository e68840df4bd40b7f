import { z } from 'zod';
import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import { parseCheckedJson } from '../base/parse-json.ts';
import { foreignLogs } from '../bounds/anyone.ts';
import type { Usage } from '../contract/report.ts';
import type { TrialRecord } from '../record/trial-record.ts';

/** What the readers of logs of other programs share. All that they read is untrusted. */

/** A batch that another program ran, or that was exported. */
export interface ForeignLog {
  suite: string;
  /** Epoch milliseconds. */
  startedAt: number;
  /** One after the other, so that only one is in memory. */
  trials: AsyncIterable<ForeignTrial>;
}

export interface ForeignTrial {
  caseId: string;
  variant: string;
  /** From 0. */
  ordinal: number;
  result: TrialRecord;
}

/**
 * A JSON document as its schema has it. Throws `LOG_UNREADABLE` with its place.
 *
 * @param place names the document: its file, and its name in there
 */
export function foreignDocument<Schema extends z.ZodType>(
  bytes: Uint8Array,
  schema: Schema,
  place: string,
): z.infer<Schema> {
  let json: unknown;
  try {
    json = parseCheckedJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    throw unreadableLog(place, error instanceof Error ? error.message : String(error), error);
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = issue ? z.core.toDotPath(issue.path) : '';
  throw unreadableLog(place, `${path === '' ? '' : `${path}: `}${issue?.message ?? 'it does not fit'}`);
}

export function unreadableLog(place: string, why: string, cause?: unknown): OffsiteError {
  return inputError('LOG_UNREADABLE', `${place} cannot be read: ${why}`, {
    hint: 'Nothing was imported. `offsite import-log` reads .eval logs of inspect_ai and job folders of Harbor.',
    cause,
  });
}

/** Epoch milliseconds; undefined for what is no time, or before 1970. */
export function timeIn(text: string | null | undefined): number | undefined {
  const at = Date.parse(text ?? '');
  return Number.isNaN(at) || at < 0 ? undefined : at;
}

export function cutText(text: string): string {
  const most = foreignLogs.bytes.text;
  return text.length > most ? `${text.slice(0, most).toWellFormed()}…` : text;
}

type UsedModel = NonNullable<TrialRecord['models']>['usage'][number];

export function modelAccount(
  parts: readonly { role: UsedModel['role']; model: string; requests: number; usage: Usage }[],
  modelMs: number,
): TrialRecord['models'] {
  if (parts.length === 0) return undefined;
  return { exchanges: [], connections: [], usage: [...parts], modelMs, agent: { acted: true } };
}

/** A verdict from a score or a reward: 1 and more is passed. Undefined if it says neither. */
export function verdictOf(value: unknown): 'passed' | 'failed' | undefined {
  if (typeof value === 'boolean') return value ? 'passed' : 'failed';
  if (typeof value === 'number') return value >= 1 ? 'passed' : 'failed';
  if (typeof value !== 'string') return undefined;
  if (/^(c|correct|yes|true|pass|passed|1|1\.0)$/i.test(value)) return 'passed';
  return /^(i|n|p|incorrect|partial|noanswer|no|false|fail|failed|0|0?\.\d+|0\.0)$/i.test(value)
    ? 'failed'
    : undefined;
}

/** A score or a reward as a check that passed or failed. */
export function foreignValidation(name: string, index: number, passed: boolean, message: string | undefined) {
  const status = passed ? ('passed' as const) : ('failed' as const);
  return { id: name, index, name, status, exitCode: passed ? 0 : 1, ...(message && { message }) };
}

/** The text of a content: a text, or a list of parts. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (typeof content === 'number' || typeof content === 'boolean') return String(content);
  if (!Array.isArray(content)) return '';
  return content.flatMap((part) => (typeof part?.text === 'string' ? [part.text as string] : [])).join('\n');
}

/** The events that are kept of a trial. */
export function firstEvents<Event>(events: readonly Event[]): readonly Event[] {
  return events.length > foreignLogs.count.events ? events.slice(0, foreignLogs.count.events) : events;
}

const failed = { failed: true };

interface ForeignCall {
  name: string;
  input: unknown;
  output: string;
  at: number;
  finishedAt?: number | undefined;
  /** Why it failed; undefined if it did not. */
  error: string | undefined;
}

/** Collects what a user, an agent and its tools said and did. */
export function foreignTranscript() {
  const events: NonNullable<TrialRecord['events']> = [];
  const trajectory: NonNullable<TrialRecord['trajectory']> = [];
  return {
    say(kind: 'user' | 'message' | 'note', at: number, text: string): void {
      if (text !== '') events.push({ kind, at, text: cutText(text) });
    },
    /** A call of a shell is a command, with the exit code that Offsite's own export writes as its error. */
    call({ name, input, output: whole, at, finishedAt, error }: ForeignCall): void {
      const output = cutText(whole);
      const { command, cmd } = (input ?? {}) as { command?: unknown; cmd?: unknown };
      const line = command ?? cmd;
      if (name !== 'bash' || typeof line !== 'string') {
        const ended = { ...(finishedAt !== undefined && { finishedAt }), ...(error !== undefined && failed) };
        events.push({ kind: 'tool', at, name, input, output, ...ended });
        return;
      }
      const exitCode = error === undefined ? 0 : Number(/^exited (\d+)$/.exec(error)?.[1]);
      trajectory.push({
        _tag: 'command',
        command: cutText(line),
        output,
        startedAtMillis: at,
        ...(finishedAt !== undefined && { finishedAtMillis: finishedAt }),
        ...(!Number.isNaN(exitCode) && { exitCode }),
      });
    },
    isEmpty: () => events.length === 0 && trajectory.length === 0,
    told: () => ({ events, ...(trajectory.length > 0 && { trajectory }) }),
  };
}
