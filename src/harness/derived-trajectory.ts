import type { TrajectoryEntry } from '../contract/report.ts';
import type { ModelExchange } from '../gateway/gateway.ts';

/** Characters of a command's output that are kept, as everywhere else. */
const outputCap = 1024 ** 2;

/** A tool call of a model and, once a later request has brought it, its result. */
interface Call {
  name: string;
  arguments: unknown;
  startedAt: number;
  finishedAt?: number;
  output?: string;
}

/**
 * The commands of a program that tells nothing itself, rebuilt from what it sent to its model: every wire has the program repeat the
 * calls it was asked to make together with their results. A command begins where the answer that asked for it ended, and ends where
 * the request with its result began. What was asked for last and never told back is not among them, nor are exit codes.
 */
export class DerivedTrajectory {
  readonly #calls = new Map<string, Call>();
  #lastAnswerAt: number | undefined;

  /** Takes one exchange, in the order they ended. A body that is cut or no JSON tells nothing. */
  add(exchange: ModelExchange, request: Buffer): void {
    if (exchange.role !== 'agent') return;
    for (const part of partsOf(exchange.wire, parsed(request))) {
      const known = this.#calls.get(part.id);
      if (part.kind === 'call' && !known) {
        const startedAt = this.#lastAnswerAt ?? exchange.startedAt;
        this.#calls.set(part.id, { name: part.name, arguments: part.arguments, startedAt });
      } else if (part.kind === 'result' && known && known.finishedAt === undefined) {
        known.finishedAt = exchange.startedAt;
        known.output = part.text;
      }
    }
    this.#lastAnswerAt = exchange.finishedAt;
  }

  entries(): TrajectoryEntry[] {
    return [...this.#calls.values()].flatMap((call) => {
      const command = commandOf(call.arguments);
      if (command === undefined || call.output === undefined) return [];
      const outputTruncated = call.output.length > outputCap;
      return {
        _tag: 'command' as const,
        command,
        startedAtMillis: call.startedAt,
        ...(call.finishedAt !== undefined && { finishedAtMillis: call.finishedAt }),
        output: call.output.slice(0, outputCap),
        outputTruncated,
      };
    });
  }
}

type Part =
  | { kind: 'call'; id: string; name: string; arguments: unknown }
  | { kind: 'result'; id: string; text: string };

/** The shell-like ones among tool calls are those with a command in their arguments, whatever the tool is called. */
function commandOf(given: unknown): string | undefined {
  const { command, cmd } = record(typeof given === 'string' ? parsed(Buffer.from(given)) : given);
  const line = command ?? cmd;
  if (typeof line === 'string') return line;
  return Array.isArray(line) && line.every((word) => typeof word === 'string') ? line.join(' ') : undefined;
}

function partsOf(wire: ModelExchange['wire'], body: unknown): Part[] {
  const { messages, input } = record(body);
  switch (wire) {
    case 'openai-chat':
      return list(messages).flatMap(chatParts);
    case 'openai-responses':
      return list(input).flatMap(responsesParts);
    case 'anthropic-messages':
      return list(messages).flatMap(({ content }) => list(content).flatMap(anthropicParts));
  }
}

function chatParts(message: Json): Part[] {
  if (message.role === 'tool') {
    return [{ kind: 'result', id: String(message.tool_call_id), text: textOf(message.content) }];
  }
  return list(message.tool_calls).map((call) => {
    const { name, arguments: given } = record(call.function);
    return { kind: 'call', id: String(call.id), name: String(name), arguments: given };
  });
}

function responsesParts(item: Json): Part[] {
  const id = String(item.call_id);
  if (item.type === 'function_call_output') return [{ kind: 'result', id, text: textOf(item.output) }];
  if (item.type !== 'function_call') return [];
  return [{ kind: 'call', id, name: String(item.name), arguments: item.arguments }];
}

function anthropicParts(block: Json): Part[] {
  if (block.type === 'tool_result') {
    return [{ kind: 'result', id: String(block.tool_use_id), text: textOf(block.content) }];
  }
  if (block.type !== 'tool_use') return [];
  return [{ kind: 'call', id: String(block.id), name: String(block.name), arguments: block.input }];
}

type Json = Record<string, unknown>;

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return list(content)
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('');
}

function list(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(record) : [];
}

function record(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
