import { derivedCommands } from '../bounds/sandbox.ts';
import type { TrajectoryEntry } from '../contract/report.ts';
import type { ModelExchange } from '../gateway/gateway.ts';
import { DocumentTooHeavy, parseForeignJson } from '../parse-json.ts';

/** A tool call of a model and, once a later request has brought it, its result. */
interface Call {
  command: string;
  startedAt: number;
  finishedAt?: number;
  output?: string;
  outputTruncated?: boolean;
}

/**
 * The commands of a program that tells nothing itself, rebuilt from what it sent to its model: every wire has the program repeat the
 * calls it was asked to make together with their results. A command begins where the answer that asked for it ended, and ends where
 * the request with its result began. What was asked for last and never told back is not among them, nor are exit codes.
 */
export class DerivedTrajectory {
  readonly #calls = new Map<string, Call>();
  #lastAnswerAt: number | undefined;
  #chars = 0;
  /** Whether some commands were left out. */
  isCut = false;

  /** Takes one exchange, in the order they ended. A body that is cut or no JSON tells nothing. */
  add(exchange: ModelExchange, request: Buffer): void {
    if (exchange.role !== 'agent') return;
    for (const part of partsOf(exchange.wire, parsed(request))) {
      const known = this.#calls.get(part.id);
      if (part.kind === 'call' && !known) {
        const command = commandOf(part.arguments);
        if (command === undefined) continue;
        if (!this.#hasRoom(part.id.length + command.length)) {
          this.isCut = true;
          continue;
        }
        const startedAt = this.#lastAnswerAt ?? exchange.startedAt;
        this.#calls.set(part.id, { command, startedAt });
      } else if (part.kind === 'result' && known && known.finishedAt === undefined) {
        const output = beginningOf(part.text);
        if (!this.#hasRoom(output.length)) continue;
        known.finishedAt = exchange.startedAt;
        known.output = output;
        known.outputTruncated = output.length < part.text.length;
      }
    }
    this.#lastAnswerAt = exchange.finishedAt;
  }

  /** Takes room for so many characters, where there is some. */
  #hasRoom(chars: number): boolean {
    if (this.#calls.size >= derivedCommands.count.commands || this.#chars + chars > derivedCommands.bytes.all)
      return false;
    this.#chars += chars;
    return true;
  }

  entries(): TrajectoryEntry[] {
    return [...this.#calls.values()].flatMap((call) => {
      const { command, output, outputTruncated = false } = call;
      if (output === undefined) return [];
      return {
        _tag: 'command' as const,
        command,
        startedAtMillis: call.startedAt,
        ...(call.finishedAt !== undefined && { finishedAtMillis: call.finishedAt }),
        output,
        outputTruncated,
      };
    });
  }
}

/** A text of its own, which does not keep alive the one that it was cut from. */
function beginningOf(text: string): string {
  return text.length <= derivedCommands.bytes.output
    ? text
    : Buffer.from(text.slice(0, derivedCommands.bytes.output), 'utf16le').toString('utf16le');
}

type Part = { kind: 'call'; id: string; arguments: unknown } | { kind: 'result'; id: string; text: string };

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
    const { arguments: given } = record(call.function);
    return { kind: 'call', id: String(call.id), arguments: given };
  });
}

function responsesParts(item: Json): Part[] {
  const id = String(item.call_id);
  if (item.type === 'function_call_output') return [{ kind: 'result', id, text: textOf(item.output) }];
  if (item.type !== 'function_call') return [];
  return [{ kind: 'call', id, arguments: item.arguments }];
}

function anthropicParts(block: Json): Part[] {
  if (block.type === 'tool_result') {
    return [{ kind: 'result', id: String(block.tool_use_id), text: textOf(block.content) }];
  }
  if (block.type !== 'tool_use') return [];
  return [{ kind: 'call', id: String(block.id), arguments: block.input }];
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
    return parseForeignJson(body.toString());
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof DocumentTooHeavy) return undefined;
    throw error;
  }
}
