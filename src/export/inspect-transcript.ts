import { clamped } from '../base/intervals.ts';
import type { Usage } from '../contract/report.ts';
import type { ExportedTrial } from '../record/exported-trial.ts';
import { commandsOf, type TimelineEntry, timelineOf } from '../record/timeline.ts';

type Json = Record<string, unknown>;

/** The scorer that says whether a trial passed. */
export const verdictScorer = 'verdict';

export interface Score {
  value: number | string;
  explanation: string | null;
}

/** What happened in a trial, as the messages and the events of a sample of inspect_ai. */
export function inspectTranscript(
  { record }: ExportedTrial,
  score: Score | undefined,
): { messages: Json[]; events: Json[] } {
  const { subject, events: told = [], verifySteps = [], validations = [], models, phases } = record;
  const commands = commandsOf(record) ?? [];
  const messages: Json[] = subject ? [{ role: 'user', content: subject.prompt, source: 'input' }] : [];
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

  const putTool = ({ kind, index, at, until, failed }: TimelineEntry, call: ToolCall) => {
    const id = `${kind}-${index}`;
    const { name, input, output, error } = call;
    const problem = failed ? { error: { type: 'unknown', message: error } } : {};
    const tool_calls = [{ id, function: name, arguments: input, type: 'function' }];
    messages.push(
      { role: 'assistant', content: '', source: 'generate', tool_calls },
      { role: 'tool', content: output, tool_call_id: id, function: name, ...problem },
    );
    put(during('harness', at, id), {
      ...{
        event: 'tool',
        type: 'function',
        id,
        function: name,
        arguments: input,
        result: output,
        ...problem,
      },
      ...(until !== undefined && {
        completed: isoTime(until),
        working_time: Math.max(0, until - at) / 1_000,
      }),
      ...(failed && { failed }),
    });
  };

  for (const entry of timelineOf(record)) {
    const { kind, index, at, until = at } = entry;
    const key = `${kind}-${index}`;
    const text = (told[index] as { text?: string } | undefined)?.text ?? '';
    if (kind === 'phase') {
      const begin = { event: 'span_begin', id: key, type: 'phase', name: entry.title };
      put({ phase: index, at, key: `${key}-begin`, rank: 0 }, begin);
      put({ phase: index, at: until, key: `${key}-end`, rank: 2 }, { event: 'span_end', id: key });
    } else if (kind === 'user') {
      if (text !== subject?.prompt) messages.push({ role: 'user', content: text });
      put(during('harness', at, key), { event: 'info', source: 'user', data: text });
    } else if (kind === 'message') {
      messages.push({ role: 'assistant', content: text, source: 'generate' });
      put(during('harness', at, key), { event: 'info', source: 'agent', data: text });
    } else if (kind === 'note') {
      put(during('harness', at, key), { event: 'info', source: 'harness', data: text });
    } else if (kind === 'tool') {
      const tool = told[index];
      if (tool?.kind !== 'tool') continue;
      const { name, input, output = '' } = tool;
      putTool(entry, { name, input: argumentsOf(input), output, error: 'the tool failed' });
    } else if (kind === 'command') {
      const { command = '', output = '', exitCode } = commands[index] ?? {};
      putTool(entry, { name: 'bash', input: { command }, output, error: `exited ${exitCode}` });
    } else if (kind === 'exchange') {
      const exchange = models?.exchanges[index];
      if (!exchange) continue;
      const { role, model, answeredBy = model, usage, failure } = exchange;
      put(during(role === 'judge' ? 'validate' : 'harness', at, key), {
        ...{ event: 'model', model, role, input: [], tools: [], tool_choice: 'auto', config: {} },
        output: {
          ...{ model: answeredBy, choices: [], usage: inspectUsage(usage) },
          time: Math.max(0, until - at) / 1_000,
        },
        ...{ retries: exchange.failedTries.length, error: failure ?? null, completed: isoTime(until) },
      });
    } else if (kind === 'verify') {
      const { command = '', exitCode = 0, output = '' } = verifySteps[index] ?? {};
      const result = { action: 'exec', cmd: command, result: exitCode, output, completed: isoTime(until) };
      put(during('verify', at, key), { event: 'sandbox', ...result });
    } else if (kind === 'validation') {
      const { name = '', status = null, message = null } = validations[index] ?? {};
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
  return { messages, events: events.map(({ event }) => event) };
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

interface ToolCall {
  name: string;
  input: Json;
  output: string;
  error: string;
}

/** The arguments of a call are an object there. */
export function argumentsOf(input: unknown): Json {
  if (typeof input === 'object' && input !== null && !Array.isArray(input)) return input as Json;
  return input === undefined ? {} : { input };
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

/** In years of four digits. Records of an older Offsite may contain any time that a harness reported. */
export function isoTime(ms: number): string {
  return new Date(clamped(ms, 0, Date.UTC(9999, 0, 1))).toISOString();
}
