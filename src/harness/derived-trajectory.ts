import { derivedCommands } from '../bounds/sandbox.ts';
import type { ModelExchange } from '../gateway/gateway.ts';
import { Losses } from '../gateway/translation/losses.ts';
import { isObject, parsed } from '../gateway/wires/lenient.ts';
import { wireTable } from '../gateway/wires/wire-table.ts';
import type { CommandEntry } from '../record/harness.ts';
import { beginningOf } from './cli-stream.ts';

/** The commands of a tool call: one, or a list of them, each with its result once a later request has it. */
interface Call {
  commands: Command[];
  isList: boolean;
}

interface Command {
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
  #commands = 0;
  #lastAnswerAt: number | undefined;
  #chars = 0;
  /** Whether some commands were left out because of the limits. */
  isCut = false;

  /**
   * Adds an exchange. Call this in the order in which exchanges end. Ignores bodies that were cut or are not
   * JSON.
   */
  add(exchange: Pick<ModelExchange, 'role' | 'wire' | 'startedAt' | 'finishedAt'>, request: Buffer): void {
    if (exchange.role !== 'agent') return;
    const { wire, startedAt } = exchange;
    const body = parsed(request.toString());
    const losses = new Losses('partial', wire);
    for (const message of wireTable[wire].translation.readMessages(isObject(body) ? body : {}, losses)) {
      if (message.from === 'model') {
        for (const part of message.parts)
          if (part.type === 'call') this.#addCall(part, this.#lastAnswerAt ?? startedAt);
      } else if (message.from === 'tool') {
        const texts = message.parts.flatMap((part) => (part.type === 'text' ? part.text : []));
        this.#addResult(message.callId, texts.join(''), startedAt);
      }
    }
    this.#lastAnswerAt = exchange.finishedAt;
  }

  #addCall({ id, arguments: given }: { id: string; arguments: string }, startedAt: number): void {
    if (this.#calls.has(id)) return;
    const { commands, isList } = commandsOf(given);
    if (commands.length === 0) return;
    const chars = commands.reduce((sum, command) => sum + command.length, id.length);
    if (this.#commands + commands.length > derivedCommands.count.commands || !this.#hasRoom(chars)) {
      this.isCut = true;
      return;
    }
    this.#commands += commands.length;
    this.#calls.set(id, { commands: commands.map((command) => ({ command, startedAt })), isList });
  }

  #addResult(id: string, text: string, finishedAt: number): void {
    const call = this.#calls.get(id);
    if (!call || call.commands.some((command) => command.finishedAt !== undefined)) return;
    const outputs = call.isList ? outputsOf(text, call.commands.length) : [text];
    for (const [index, command] of call.commands.entries()) {
      const whole = outputs[index] ?? '';
      const output = beginningOf(whole, derivedCommands.bytes.output);
      if (!this.#hasRoom(output.length)) return;
      command.finishedAt = finishedAt;
      command.output = output;
      command.outputTruncated = output.length < whole.length;
    }
  }

  /** Reserves room for the given number of characters. Returns false if there is not enough. */
  #hasRoom(chars: number): boolean {
    if (this.#chars + chars > derivedCommands.bytes.all) return false;
    this.#chars += chars;
    return true;
  }

  entries(): CommandEntry[] {
    const all = [...this.#calls.values()].flatMap(({ commands }) => commands);
    return all.flatMap(({ command, startedAt, finishedAt, output, outputTruncated = false }) => {
      if (output === undefined) return [];
      return {
        _tag: 'command' as const,
        command,
        startedAtMillis: startedAt,
        timesBy: 'arrival' as const,
        ...(finishedAt !== undefined && { finishedAtMillis: finishedAt }),
        output,
        outputTruncated,
      };
    });
  }
}

/**
 * The commands of a tool call. None if the tool runs no commands. Tools that run commands have these in their
 * arguments, whatever the name of the tool is. Each entry of a list `commands` is a whole command. A list
 * `command` is a program with its arguments.
 */
function commandsOf(given: string): { commands: string[]; isList: boolean } {
  const read = parsed(given);
  const { command, cmd, commands } = isObject(read) ? read : {};
  const line = command ?? cmd;
  if (typeof line === 'string') return { commands: [line], isList: false };
  if (isTexts(line)) return { commands: [line.join(' ')], isList: false };
  return { commands: isTexts(commands) ? commands : [], isList: true };
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

/**
 * The outputs of a call's commands. The result of several commands is split if it is a JSON list with an
 * entry for each. Otherwise all of it is the output of the last command.
 */
function outputsOf(text: string, count: number): string[] {
  const list = text.startsWith('[') ? parsed(text) : undefined;
  const isList = Array.isArray(list) && list.length === count && list.every(isObject);
  if (!isList) return [...Array.from({ length: count - 1 }, () => ''), text];
  return list.map((entry) => {
    const printed = entry.result ?? entry.output;
    return typeof printed === 'string' ? printed : JSON.stringify(entry);
  });
}
