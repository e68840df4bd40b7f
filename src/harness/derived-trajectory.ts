import { derivedCommands } from '../bounds/sandbox.ts';
import type { TrajectoryEntry } from '../contract/report.ts';
import type { ModelExchange } from '../gateway/gateway.ts';
import { anything, isObject, object, parsed } from '../gateway/wires/lenient.ts';
import type { RequestedCall } from '../gateway/wires/model-request.ts';
import { wireTable } from '../gateway/wires/wire-table.ts';
import { beginningOf } from './beginning-of.ts';

/** A tool call of a model, and its result once a later request contains it. */
interface Call {
  command: string;
  startedAt: number;
  finishedAt?: number;
  output?: string;
  outputTruncated?: boolean;
}

/**
 * The commands of a program that does not report them, rebuilt from its requests to its model. On every wire,
 * a program repeats the tool calls that the model asked for, with their results. A command starts when the
 * answer that asked for it ended, and ends when the request with its result started. Commands without a
 * result are left out, and exit codes are unknown.
 */
export class DerivedTrajectory {
  readonly #calls = new Map<string, Call>();
  #lastAnswerAt: number | undefined;
  #chars = 0;
  /** Whether some commands were left out because of the limits. */
  isCut = false;

  /**
   * Adds an exchange. Call this in the order in which exchanges end. Ignores bodies that were cut or are not
   * JSON.
   */
  add(exchange: ModelExchange, request: Buffer): void {
    if (exchange.role !== 'agent') return;
    const body = parsed(request.toString());
    const { messages } = wireTable[exchange.wire].requests.read(isObject(body) ? body : {});
    for (const message of messages) {
      if (message.from === 'model') {
        for (const call of message.calls) this.#addCall(call, this.#lastAnswerAt ?? exchange.startedAt);
      } else if (message.from === 'tool') {
        this.#addResult(message.callId, message.texts.join(''), exchange.startedAt);
      }
    }
    this.#lastAnswerAt = exchange.finishedAt;
  }

  #addCall({ id, arguments: given }: RequestedCall, startedAt: number): void {
    if (this.#calls.has(id)) return;
    const command = commandOf(given);
    if (command === undefined) return;
    if (this.#hasRoom(id.length + command.length)) this.#calls.set(id, { command, startedAt });
    else this.isCut = true;
  }

  #addResult(id: string, text: string, finishedAt: number): void {
    const call = this.#calls.get(id);
    if (!call || call.finishedAt !== undefined) return;
    const output = beginningOf(text, derivedCommands.bytes.output);
    if (!this.#hasRoom(output.length)) return;
    call.finishedAt = finishedAt;
    call.output = output;
    call.outputTruncated = output.length < text.length;
  }

  /** Reserves room for the given number of characters. Returns false if there is not enough. */
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

/**
 * The command of a tool call. Undefined for a tool that runs no commands: tools that do have a command in
 * their arguments, whatever their name is.
 */
function commandOf(given: unknown): string | undefined {
  const { command, cmd } = Arguments.parse(typeof given === 'string' ? parsed(given) : given);
  const line = command ?? cmd;
  if (typeof line === 'string') return line;
  return Array.isArray(line) && line.every((word) => typeof word === 'string') ? line.join(' ') : undefined;
}

const Arguments = object({ command: anything, cmd: anything });
