import { getHeapStatistics } from 'node:v8';
import { OutputCapture } from '../base/output-capture.ts';
import { commandOutput, harnessLines } from '../bounds/sandbox.ts';
import type { Usage } from '../contract/report.ts';
import type { CommandEntry, HarnessEvent } from '../record/harness.ts';

/** What a harness has reported so far about the outcome of its turn. */
export type TurnStatus =
  | { kind: 'unknown' }
  | { kind: 'started' }
  | { kind: 'done' }
  | { kind: 'agent-failed' | 'model-failed' | 'runner-broke'; message: string };

/** When a harness said that something happened, and when it happened by its own clock. Epoch milliseconds. */
interface Moment {
  at: number;
  /** Undefined if the harness does not say it. */
  own?: number | undefined;
}

/** How a tool ended. A missing field is unknown. */
interface ToolEnd extends Moment {
  output?: string | undefined;
  failed?: boolean | undefined;
}

interface CommandEnd extends Moment {
  exitCode?: number | undefined;
  output?: string | undefined;
  /** Whether the harness itself has cut the output. */
  truncated?: boolean | undefined;
}

/** The number of characters that a value in a tool's input counts for. */
const valueChars = 32;

type ToolEvent = Extract<HarnessEvent, { kind: 'tool' }>;

/** A command or a tool that is not known to have ended. */
interface Open<Entry> {
  entry: Entry;
  begun: Begun;
}

/** `at` is undefined if the line that says so also says how it ended. */
type Begun = { at: number | undefined; own?: number | undefined };

/** When something began and ended. Epoch milliseconds. */
interface Span {
  /** Undefined if it is not known. */
  startedAt: number | undefined;
  finishedAt: number;
  timesBy?: 'arrival';
}

/**
 * The results of one turn so far, as its harness reports them. If there is no room left, outputs are cut,
 * entries are left out, and `isWhole` becomes false.
 */
export class TurnRecord {
  readonly trajectory: CommandEntry[] = [];
  readonly events: HarnessEvent[] = [];
  /** False if an entry was left out, so that nobody takes the record for complete. */
  isWhole = true;
  status: TurnStatus = { kind: 'unknown' };
  /** The harness's own name for the conversation. It is needed to continue the conversation. */
  sessionId: string | undefined;
  version: string | undefined;
  usage: Usage | undefined;
  finalMessage: string | undefined;
  /** Commands and tools in progress, by the harness's own id. */
  readonly #commands = new Map<string, Open<CommandEntry>>();
  readonly #tools = new Map<string, Open<ToolEvent>>();
  readonly #startedAt: number;
  readonly #room: RecordRoom;

  /**
   * @param startedAt when the turn began, in epoch milliseconds
   * @param room the room of the whole conversation
   */
  constructor(startedAt: number, room = new RecordRoom()) {
    this.#startedAt = startedAt;
    this.#room = room;
  }

  begin(sessionId: string): void {
    this.sessionId = sessionId;
    if (this.status.kind === 'unknown') this.status = { kind: 'started' };
  }

  /**
   * Returns the entry. Undefined if there is no room for it.
   *
   * @param at when the line arrived. Undefined if the line also says how the command ended
   * @param own when it began by the harness's own clock, if it says so
   */
  beginCommand(id: string, command: string, at: number | undefined, own?: number): CommandEntry | undefined {
    if (!this.#hasRoom(id.length + command.length)) return undefined;
    const entry: CommandEntry = {
      _tag: 'command',
      command,
      ...(at !== undefined && { startedAtMillis: this.#placed({ at, own }) }),
      timesBy: 'arrival',
    };
    this.trajectory.push(entry);
    this.#commands.set(id, { entry, begun: { at, own } });
    return entry;
  }

  /** The text of the command `id`. Undefined if it did not start or has ended. */
  openCommand(id: string): string | undefined {
    return this.#commands.get(id)?.entry.command;
  }

  endCommand(id: string, { at, own, exitCode, output, truncated }: CommandEnd): void {
    const open = this.#commands.get(id);
    if (!open) return;
    this.#commands.delete(id);
    const { entry } = open;
    const span = this.#span(open.begun, { at, own });
    if (span.startedAt !== undefined) entry.startedAtMillis = span.startedAt;
    entry.finishedAtMillis = span.finishedAt;
    if (span.timesBy === undefined) delete entry.timesBy;
    if (exitCode !== undefined) entry.exitCode = exitCode;
    if (output === undefined) return;
    const kept = this.#kept(output);
    entry.output = kept.text;
    entry.outputTruncated = kept.truncated || truncated === true;
  }

  /** The parameters are as for a command. Without `at`, call {@link endTool} next. */
  beginTool(id: string, name: string, input: unknown, at: number | undefined, own?: number): void {
    if (!this.#hasRoom(id.length + name.length + weightOfInput(input))) return;
    const entry: ToolEvent = { kind: 'tool', at: this.#placed({ at: at ?? own ?? 0, own }), name, input };
    this.events.push(entry);
    this.#tools.set(id, { entry, begun: { at, own } });
  }

  toolIsOpen(id: string): boolean {
    return this.#tools.has(id);
  }

  endTool(id: string, { at, own, output, failed }: ToolEnd): void {
    const open = this.#tools.get(id);
    if (!open) return;
    this.#tools.delete(id);
    const { entry: event } = open;
    const span = this.#span(open.begun, { at, own });
    event.at = span.startedAt ?? span.finishedAt;
    if (span.startedAt !== undefined) event.finishedAt = span.finishedAt;
    if (span.timesBy) event.timesBy = span.timesBy;
    if (output !== undefined) event.output = this.#kept(output).text;
    if (failed !== undefined) event.failed = failed;
  }

  /** Adds a message of the harness to the user. */
  message(text: string, at: number, own?: number): void {
    if (text === '') return;
    const kept = cut(text).text;
    this.finalMessage = kept;
    if (this.#hasRoom(kept.length))
      this.events.push({ kind: 'message', at: this.#placed({ at, own }), text: kept });
  }

  note(text: string, at: number, own?: number): void {
    const kept = cut(text).text;
    if (this.#hasRoom(kept.length))
      this.events.push({ kind: 'note', at: this.#placed({ at, own }), text: kept });
  }

  addUsage(usage: Usage): void {
    this.usage = this.usage === undefined ? usage : combine(this.usage, usage, (sum, more) => sum + more);
  }

  /** The harness's own time if it can be true. It may use another clock, or pass on what its agent prints. */
  #placed({ at, own = at }: Moment): number {
    return own >= this.#startedAt && own <= at ? own : at;
  }

  /**
   * Two times of one clock: the harness's if both are known and their difference can be true. If its clock is
   * off ours, the end is put where it arrived. Otherwise both are the times of arrival.
   */
  #span(begun: Begun, ended: Moment): Span {
    const took = (ended.own ?? Number.NaN) - (begun.own ?? Number.NaN);
    if (!(took >= 0 && took <= ended.at - this.#startedAt))
      return { startedAt: begun.at, finishedAt: ended.at, timesBy: 'arrival' };
    const end = this.#placed(ended);
    const finishedAt = end - took >= this.#startedAt ? end : ended.at;
    return { startedAt: finishedAt - took, finishedAt };
  }

  #hasRoom(chars: number): boolean {
    const hasRoom = this.#room.takeEntry(chars);
    this.isWhole &&= hasRoom;
    return hasRoom;
  }

  /** The part of an output that is kept. Empty if there is no room for it. */
  #kept(output: string): { text: string; truncated: boolean } {
    const kept = cut(output);
    return this.#room.take(kept.text.length) ? kept : { text: '', truncated: output !== '' };
  }
}

/** The increase of a count that continues from turn to turn. */
export function usageSince(total: Usage, before: Usage | undefined): Usage {
  return before === undefined ? total : combine(total, before, (now, then) => Math.max(0, now - then));
}

/** Combines two usages number by number. A number that either of them lacks is left out. */
function combine(one: Usage, other: Usage, of: (one: number, other: number) => number): Usage {
  const entries = Object.entries(one).flatMap(([name, number]) => {
    const second = other[name as keyof Usage];
    return number === undefined || second === undefined ? [] : [[name, of(number, second)]];
  });
  return Object.fromEntries(entries);
}

/**
 * The number of characters that a tool's input counts for. Values take more memory than their text: three
 * characters may become sixty bytes.
 */
function weightOfInput(input: unknown): number {
  const text = JSON.stringify(input) ?? '';
  return text.length + valueChars * (text.match(/[{[,:]/g)?.length ?? 0);
}

function cut(text: string): { text: string; truncated: boolean } {
  if (text.length * 3 <= commandOutput.bytes.kept) return { text, truncated: false };
  const capture = new OutputCapture(commandOutput.bytes.kept);
  capture.push(Buffer.from(text));
  return capture.result();
}

/**
 * Providers report only in words that a conversation is too long for the model: OpenAI's
 * `context_length_exceeded` and "maximum context length", Anthropic's "prompt is too long", and the CLIs'
 * versions of these.
 */
export function saysTooLong(message: string): boolean {
  return /context[_ ](length|window|size)|maximum context|prompt is too long/i.test(message);
}

/**
 * The status of a harness that gave up after an error of its model. If the conversation became too long for
 * the model, that is the agent's failure.
 */
export function modelFailure(message: string): TurnStatus {
  return { kind: saysTooLong(message) ? 'agent-failed' : 'model-failed', message };
}

/**
 * The maximum number of characters in the record of one conversation. With a small heap it is less: {@link
 * heapPart} of the heap.
 */
const recordedChars = harnessLines.bytes.recorded;
/**
 * Storing a trial keeps several copies of its record in memory, and several trials may be stored at a time.
 */
const heapPart = 1 / 64;
/** The characters that an entry counts for in addition to its texts. */
const entryChars = 200;

/**
 * The limit on what is recorded of a harness, over all turns of a conversation. The agent decides how much
 * its harness prints, so the record needs a limit.
 */
export class RecordRoom {
  #left = Math.min(recordedChars, Math.floor(getHeapStatistics().heap_size_limit * heapPart));

  /**
   * Reserves room for another entry with the given number of characters. Returns false if there is not
   * enough.
   */
  takeEntry(chars: number): boolean {
    return this.take(chars + entryChars);
  }

  /** Reserves room for more characters of an existing entry. Returns false if there is not enough. */
  take(chars: number): boolean {
    if (chars > this.#left) return false;
    this.#left -= chars;
    return true;
  }
}
