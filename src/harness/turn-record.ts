import { commandOutput } from '../bounds/sandbox.ts';
import type { TrajectoryEntry, Usage } from '../contract/report.ts';
import { OutputCapture } from '../engine/exec/output-capture.ts';
import { RecordRoom } from './record-room.ts';
import type { HarnessEvent } from './runner.ts';

/** What a harness has reported so far about the outcome of its turn. */
export type TurnStatus =
  | { kind: 'unknown' }
  | { kind: 'started' }
  | { kind: 'done' }
  | { kind: 'agent-failed' | 'model-failed' | 'runner-broke'; message: string };

/** How a tool ended. A missing field is unknown. */
interface ToolEnd {
  /** Epoch milliseconds. */
  at: number;
  output?: string | undefined;
  failed?: boolean | undefined;
}

interface CommandEnd {
  at: number;
  exitCode?: number | undefined;
  output?: string | undefined;
  /** Whether the harness itself has cut the output. */
  truncated?: boolean | undefined;
}

/** The number of characters that a value in a tool's input counts for. */
const valueChars = 32;

type ToolEvent = Extract<HarnessEvent, { kind: 'tool' }>;

/**
 * The results of one turn so far, as its harness reports them. If there is no room left, outputs are cut,
 * entries are left out, and `isWhole` becomes false.
 */
export class TurnRecord {
  readonly trajectory: TrajectoryEntry[] = [];
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
  readonly #commands = new Map<string, TrajectoryEntry>();
  readonly #tools = new Map<string, ToolEvent>();
  readonly #room: RecordRoom;

  /** @param room the room of the whole conversation */
  constructor(room = new RecordRoom()) {
    this.#room = room;
  }

  begin(sessionId: string): void {
    this.sessionId = sessionId;
    if (this.status.kind === 'unknown') this.status = { kind: 'started' };
  }

  /** Returns the entry. Undefined if there is no room for it. */
  beginCommand(id: string, command: string, at: number): TrajectoryEntry | undefined {
    if (!this.#hasRoom(id.length + command.length)) return undefined;
    const entry: TrajectoryEntry = { _tag: 'command', command, startedAtMillis: at };
    this.trajectory.push(entry);
    this.#commands.set(id, entry);
    return entry;
  }

  /** The text of the command `id`. Undefined if it did not start or has ended. */
  openCommand(id: string): string | undefined {
    return this.#commands.get(id)?.command;
  }

  endCommand(id: string, { at, exitCode, output, truncated }: CommandEnd): void {
    const entry = this.#commands.get(id);
    if (!entry) return;
    this.#commands.delete(id);
    // The start may have been stamped by another clock than the harness's.
    entry.finishedAtMillis = Math.max(at, entry.startedAtMillis ?? at);
    if (exitCode !== undefined) entry.exitCode = exitCode;
    if (output === undefined) return;
    const kept = this.#kept(output);
    entry.output = kept.text;
    entry.outputTruncated = kept.truncated || truncated === true;
  }

  beginTool(id: string, name: string, input: unknown, at: number): void {
    if (!this.#hasRoom(id.length + name.length + weightOfInput(input))) return;
    const event: ToolEvent = { kind: 'tool', at, name, input };
    this.events.push(event);
    this.#tools.set(id, event);
  }

  toolIsOpen(id: string): boolean {
    return this.#tools.has(id);
  }

  endTool(id: string, { at, output, failed }: ToolEnd): void {
    const event = this.#tools.get(id);
    if (!event) return;
    this.#tools.delete(id);
    event.finishedAt = Math.max(at, event.at);
    if (output !== undefined) event.output = this.#kept(output).text;
    if (failed !== undefined) event.failed = failed;
  }

  /** Adds a message of the harness to the user. */
  message(text: string, at: number): void {
    if (text === '') return;
    const kept = cut(text).text;
    this.finalMessage = kept;
    if (this.#hasRoom(kept.length)) this.events.push({ kind: 'message', at, text: kept });
  }

  note(text: string, at: number): void {
    const kept = cut(text).text;
    if (this.#hasRoom(kept.length)) this.events.push({ kind: 'note', at, text: kept });
  }

  addUsage(usage: Usage): void {
    this.usage = this.usage === undefined ? usage : combine(this.usage, usage, (sum, more) => sum + more);
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
