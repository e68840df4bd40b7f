import { commandOutput } from '../bounds/sandbox.ts';
import type { TrajectoryEntry, Usage } from '../contract/report.ts';
import { OutputCapture } from '../engine/exec/output-capture.ts';
import { RecordRoom } from './record-room.ts';
import type { HarnessEvent } from './runner.ts';

/** What a harness has said so far of how its turn goes. */
export type Told =
  | { told: 'nothing' }
  | { told: 'begun' }
  | { told: 'done' }
  | { told: 'agent-failed' | 'model-failed' | 'runner-broke'; message: string };

/** How a command or a tool ended; what is left out is not known. */
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
  /** The harness itself has cut the output. */
  truncated?: boolean | undefined;
}

/** Characters that a value of a tool's input counts as. */
const valueChars = 32;

type ToolEvent = Extract<HarnessEvent, { kind: 'tool' }>;

/**
 * What one turn has brought so far, as its harness tells it piece by piece. What there is no room for is not
 * kept: outputs are cut, entries left out, and the record is not whole.
 */
export class TurnRecord {
  readonly trajectory: TrajectoryEntry[] = [];
  readonly events: HarnessEvent[] = [];
  /** False once an entry was left out, so that nobody takes what is here for all there was. */
  isWhole = true;
  told: Told = { told: 'nothing' };
  /** The harness's own name for the conversation, to continue it by. */
  sessionId: string | undefined;
  version: string | undefined;
  usage: Usage | undefined;
  finalMessage: string | undefined;
  /** Commands and tools that have begun and not ended, by the harness's own id. */
  readonly #commands = new Map<string, TrajectoryEntry>();
  readonly #tools = new Map<string, ToolEvent>();
  readonly #room: RecordRoom;

  /** @param room of the whole conversation */
  constructor(room = new RecordRoom()) {
    this.#room = room;
  }

  begin(sessionId: string): void {
    this.sessionId = sessionId;
    if (this.told.told === 'nothing') this.told = { told: 'begun' };
  }

  beginCommand(id: string, command: string, at: number): void {
    if (!this.#hasRoom(command.length)) return;
    const entry: TrajectoryEntry = { _tag: 'command', command, startedAtMillis: at };
    this.trajectory.push(entry);
    this.#commands.set(id, entry);
  }

  /** The command `id` as it was begun; undefined where it was not, or has ended. */
  openCommand(id: string): string | undefined {
    return this.#commands.get(id)?.command;
  }

  endCommand(id: string, { at, exitCode, output, truncated }: CommandEnd): void {
    const entry = this.#commands.get(id);
    if (!entry) return;
    this.#commands.delete(id);
    // The harness's clock may not be the one that stamped the beginning.
    entry.finishedAtMillis = Math.max(at, entry.startedAtMillis ?? at);
    if (exitCode !== undefined) entry.exitCode = exitCode;
    if (output === undefined) return;
    const kept = this.#kept(output);
    entry.output = kept.text;
    entry.outputTruncated = kept.truncated || truncated === true;
  }

  beginTool(id: string, name: string, input: unknown, at: number): void {
    if (!this.#hasRoom(name.length + weightOfInput(input))) return;
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

  /** Something it said to the user. */
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

  /** An output as it is kept: not at all where there is no room for it. */
  #kept(output: string): { text: string; truncated: boolean } {
    const kept = cut(output);
    return this.#room.take(kept.text.length) ? kept : { text: '', truncated: output !== '' };
  }
}

/** What is new in a count that goes on from turn to turn. */
export function usageSince(total: Usage, before: Usage | undefined): Usage {
  return before === undefined ? total : combine(total, before, (now, then) => Math.max(0, now - then));
}

/** Number by number; one that either side does not know is not known. */
function combine(one: Usage, other: Usage, of: (one: number, other: number) => number): Usage {
  const entries = Object.entries(one).flatMap(([name, number]) => {
    const second = other[name as keyof Usage];
    return number === undefined || second === undefined ? [] : [[name, of(number, second)]];
  });
  return Object.fromEntries(entries);
}

/** Values take more than their text does: three characters may be sixty bytes. */
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
