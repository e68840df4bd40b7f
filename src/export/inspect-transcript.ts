import { clamped } from '../base/intervals.ts';
import type { Usage } from '../contract/report.ts';
import { commandsOf, timelineOf } from '../record/timeline.ts';
import type { TrialRecord } from '../record/trial-record.ts';

type Json = Record<string, unknown>;

/** The scorer that says whether a trial passed. */
export const verdictScorer = 'verdict';

export interface Score {
  value: number | string;
  explanation: string | null;
}

/** The messages of a sample of inspect_ai. */
export function inspectMessages(record: TrialRecord): Json[] {
  return conversationOf(record).flatMap((turn): Json[] => {
    if (turn.kind === 'note') return [];
    if (turn.kind !== 'call')
      return [{ role: turn.kind === 'user' ? 'user' : 'assistant', content: turn.text }];
    const { key, name, input, output } = turn;
    const tool_calls = [{ id: key, function: name, arguments: input, type: 'function' }];
    return [
      { role: 'assistant', content: '', tool_calls },
      { role: 'tool', content: output, tool_call_id: key, function: name, ...problemOf(turn) },
    ];
  });
}

/** What happened in a trial, as the events of a sample of inspect_ai. Each phase is a span. */
export function inspectEvents(record: TrialRecord, score: Score | undefined): Json[] {
  const { verifySteps = [], validations = [], models, phases } = record;
  const events: Placed[] = [];
  const put = ({ phase, at, key, rank }: Place, event: Json) => {
    const working_start = Math.max(0, at - record.startedAt) / 1_000;
    const placed = { uuid: key, timestamp: isoTime(at), working_start, span_id: spanOf(phase) };
    events.push({ at, order: 3 * phase + rank, event: { ...placed, ...event } });
  };
  const during = (name: string, at: number, key: string): Place => {
    const phase = phases.findLastIndex((one) => one.name === name && one.startedAt <= at);
    return { phase, at, key, rank: 1 };
  };
  for (const turn of conversationOf(record))
    if (turn.key !== 'prompt') put(during('harness', turn.at, turn.key), turnEvent(turn));
  for (const { kind, index, at, until = at, title } of timelineOf(record)) {
    const key = `${kind}-${index}`;
    const [exchange, step, validation] = [models?.exchanges[index], verifySteps[index], validations[index]];
    if (kind === 'phase') {
      const begin = { event: 'span_begin', id: key, type: 'phase', name: title };
      put({ phase: index, at, key: `${key}-begin`, rank: 0 }, begin);
      put({ phase: index, at: until, key: `${key}-end`, rank: 2 }, { event: 'span_end', id: key });
    } else if (kind === 'exchange' && exchange) {
      const { role, model, answeredBy = model, usage, failure } = exchange;
      put(during(role === 'judge' ? 'validate' : 'harness', at, key), {
        event: 'model',
        model,
        role,
        input: [],
        tools: [],
        tool_choice: 'auto',
        config: {},
        output: {
          model: answeredBy,
          choices: [],
          usage: inspectUsage(usage),
          time: Math.max(0, until - at) / 1_000,
        },
        retries: exchange.failedTries.length,
        error: failure ?? null,
        completed: isoTime(until),
      });
    } else if (kind === 'verify' && step) {
      const { command, exitCode, output } = step;
      const result = { action: 'exec', cmd: command, result: exitCode, output, completed: isoTime(until) };
      put(during('verify', at, key), { event: 'sandbox', ...result });
    } else if (kind === 'validation' && validation) {
      const { name, status = null, message = null } = validation;
      put(during('validate', at, key), {
        event: 'info',
        source: `validation ${name}`,
        data: { status, message },
      });
    }
  }
  events.sort((one, other) => one.at - other.at || one.order - other.order);
  const end = { phase: -1, at: record.finishedAt, key: 'score', rank: 2 } as const;
  if (score) put(end, { event: 'score', scorer: verdictScorer, score });
  return events.map(({ event }) => event);
}

interface Place {
  /** The index of the phase that it belongs to; -1 for none. */
  phase: number;
  at: number;
  /** Identifies the event in its sample. */
  key: string;
  /** 0 for what begins a phase, 1 for what happens in it, 2 for what ends it. */
  rank: 0 | 1 | 2;
}

interface Placed {
  at: number;
  /** Among events of the same time: a phase begins when the one before it ends. */
  order: number;
  event: Json;
}

function spanOf(phase: number): string | null {
  return phase === -1 ? null : `phase-${phase}`;
}

function turnEvent(turn: Turn): Json {
  if (turn.kind !== 'call') return { event: 'info', source: turn.kind, data: turn.text };
  const { key: id, name, input, output, at, until } = turn;
  return {
    event: 'tool',
    type: 'function',
    id,
    function: name,
    arguments: input,
    result: output,
    ...(until !== undefined && { completed: isoTime(until), working_time: Math.max(0, until - at) / 1_000 }),
    ...problemOf(turn),
  };
}

/** The viewer shows an error in place of the output, so one with output is told beside it. */
function problemOf({ error, output }: Called): Json {
  if (error === undefined) return {};
  return output === '' ? { error: { type: 'unknown', message: error } } : { metadata: { error } };
}

/** inspect counts cached tokens beside the input; Offsite counts them in it. */
export function inspectUsage(usage: Usage) {
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens, cacheWriteTokens } = usage;
  return {
    input_tokens: Math.max(0, inputTokens - (cacheReadTokens ?? 0) - (cacheWriteTokens ?? 0)),
    output_tokens: outputTokens,
    total_tokens: usage.totalTokens ?? inputTokens + outputTokens,
    input_tokens_cache_read: cacheReadTokens ?? null,
    input_tokens_cache_write: cacheWriteTokens ?? null,
    total_cost: usage.costUsd ?? null,
  };
}

/** What the user, the agent and its tools said and did, as others have it. Times are epoch milliseconds. */
export type Turn = { at: number; until: number | undefined; key: string } & (Said | Called);

interface Said {
  kind: 'user' | 'agent' | 'note';
  text: string;
}

interface Called {
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
