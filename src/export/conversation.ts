import { clamped } from '../base/intervals.ts';
import { commandsOf, timelineOf } from '../record/timeline.ts';
import type { TrialRecord } from '../record/trial-record.ts';

/** What the user, the agent and its tools said and did, as others have it. Times are epoch milliseconds. */
export type Turn = { at: number; until: number | undefined; key: string } & (Said | Called);

interface Said {
  kind: 'user' | 'agent' | 'note';
  text: string;
}

export interface Called {
  kind: 'call';
  name: string;
  input: Record<string, unknown>;
  output: string;
  /** Why it failed; undefined if it did not. */
  error: string | undefined;
}

/** The turns of a trial in the order that they began. The prompt is the first one, if it is known. */
export function conversationOf(record: TrialRecord): Turn[] {
  const { subject, events = [], startedAt } = record;
  const commands = commandsOf(record) ?? [];
  const turns: Turn[] = [];
  if (subject)
    turns.push({ kind: 'user', text: subject.prompt, at: startedAt, until: undefined, key: 'prompt' });
  for (const { kind, index, at, until, failed } of timelineOf(record)) {
    const place = { at, until, key: `${kind}-${index}` };
    if (kind === 'command') {
      const { command = '', output = '', exitCode } = commands[index] ?? {};
      const error = failed ? `exited ${exitCode}` : undefined;
      turns.push({ ...place, kind: 'call', name: 'bash', input: { command }, output, error });
      continue;
    }
    const event =
      kind === 'tool' || kind === 'user' || kind === 'message' || kind === 'note' ? events[index] : undefined;
    if (!event) continue;
    if (event.kind === 'tool') {
      const { name, input, output = '' } = event;
      const error = failed ? 'the tool failed' : undefined;
      turns.push({ ...place, kind: 'call', name, input: argumentsOf(input), output, error });
    } else if (event.kind !== 'user' || event.text !== subject?.prompt) {
      turns.push({ ...place, kind: event.kind === 'message' ? 'agent' : event.kind, text: event.text });
    }
  }
  return turns;
}

/** The arguments of a call are an object in the formats of others. */
function argumentsOf(input: unknown): Record<string, unknown> {
  if (typeof input === 'object' && input !== null && !Array.isArray(input)) return { ...input };
  return input === undefined ? {} : { input };
}

/** In years of four digits. Records of an older Offsite may contain any time that a harness reported. */
export function isoTime(ms: number): string {
  return new Date(clamped(ms, 0, Date.UTC(9999, 0, 1))).toISOString();
}

/** Part of the name of a file. */
export function plainName(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9.-]+/g, '-').slice(0, 60);
}
