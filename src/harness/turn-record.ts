import { commandOutput, harnessLines } from '../bounds/sandbox.ts';
import type { TrajectoryEntry, Usage } from '../contract/report.ts';
import { OutputCapture } from '../engine/exec/output-capture.ts';
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

type ToolEvent = Extract<HarnessEvent, { kind: 'tool' }>;

/** A value of JSON takes more than its text does. */
const valueWeight = 4;

/** What one turn has brought so far, as its harness tells it piece by piece. */
export class TurnRecord {
  readonly trajectory: TrajectoryEntry[] = [];
  readonly events: HarnessEvent[] = [];
  told: Told = { told: 'nothing' };
  /** The harness's own name for the conversation, to continue it by. */
  sessionId: string | undefined;
  version: string | undefined;
  usage: Usage | undefined;
  finalMessage: string | undefined;
  /** Whether it told more than is kept, so that what is here is not all. */
  isFull = false;
  #entries = 0;
  #room = harnessLines.bytes.told;
  /** Commands and tools that have begun and not ended, by the harness's own id. */
  readonly #commands = new Map<string, TrajectoryEntry>();
  readonly #tools = new Map<string, ToolEvent>();

  begin(sessionId: string): void {
    this.sessionId = sessionId;
    if (this.told.told === 'nothing') this.told = { told: 'begun' };
  }

  beginCommand(id: string, command: string, at: number): void {
    if (!this.#hasRoom(id.length + command.length)) return;
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
    const kept = cut(output);
    if (!this.#hasRoom(kept.text.length)) return;
    entry.output = kept.text;
    entry.outputTruncated = kept.truncated || truncated === true;
  }

  beginTool(id: string, name: string, input: unknown, at: number): void {
    if (!this.#hasRoom(id.length + name.length + valueWeight * (JSON.stringify(input)?.length ?? 0))) return;
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
    const kept = output === undefined ? undefined : cut(output).text;
    if (kept !== undefined && this.#hasRoom(kept.length)) event.output = kept;
    if (failed !== undefined) event.failed = failed;
  }

  /** Something it said to the user. */
  message(text: string, at: number): void {
    if (text === '') return;
    const kept = cut(text).text;
    if (this.#hasRoom(kept.length)) this.events.push({ kind: 'message', at, text: kept });
    this.finalMessage = text;
  }

  note(text: string, at: number): void {
    const kept = cut(text).text;
    if (this.#hasRoom(kept.length)) this.events.push({ kind: 'note', at, text: kept });
  }

  /** Takes room for so many characters, where there is some. */
  #hasRoom(characters: number): boolean {
    this.isFull ||= this.#entries >= harnessLines.count.told || characters > this.#room;
    if (this.isFull) return false;
    this.#entries += 1;
    this.#room -= characters;
    return true;
  }

  addUsage(usage: Usage): void {
    this.usage = this.usage === undefined ? usage : combine(this.usage, usage, (sum, more) => sum + more);
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

function cut(text: string): { text: string; truncated: boolean } {
  if (text.length * 3 <= commandOutput.bytes.kept) return { text, truncated: false };
  const capture = new OutputCapture(commandOutput.bytes.kept);
  capture.push(Buffer.from(text));
  return capture.result();
}
