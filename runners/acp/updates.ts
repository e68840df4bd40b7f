import { z } from 'zod';
import { acpMessages } from '../../src/bounds/sandbox.ts';
import { beginningOf } from '../../src/harness/cli-stream.ts';
import type { TurnRecord } from '../../src/harness/turn-record.ts';
import type { CommandEntry } from '../../src/record/harness.ts';
import { scriptOfShell } from '../cli-runner.ts';

const Content = z.looseObject({
  type: z.string(),
  content: z.looseObject({ text: z.string().optional() }).nullish(),
});

/** A tool call, or what has changed of it. */
const ToolUpdate = z.object({
  toolCallId: z.string().max(acpMessages.bytes.id),
  title: z.string().nullish(),
  kind: z.string().nullish(),
  status: z.string().nullish(),
  content: z.array(Content).nullish(),
  rawInput: z.unknown().optional(),
  rawOutput: z.unknown().optional(),
});
type ToolUpdate = z.infer<typeof ToolUpdate>;

/** Some agents give the command that a tool runs, and the exit code, in these members. */
const Input = z.object({ command: z.union([z.string(), z.array(z.string())]) });
const Code = z.int().nullish();
const Output = z.looseObject({
  exitCode: Code,
  exit_code: Code,
  metadata: z.looseObject({ exit: Code }).nullish(),
  output: z.string().nullish(),
});

interface OpenCall {
  at: number;
  kind: string | undefined;
  /** `terminal`: the commands of terminals are recorded on their own. */
  recordedAs: 'command' | 'tool' | 'terminal' | undefined;
  entry?: CommandEntry | undefined;
  title: string;
}

/**
 * The tool calls that an agent reports. Calls that run a command are recorded as commands if the agent names
 * the command.
 */
class ToolCalls {
  /** Entries that are left out, because a terminal's command is recorded in their place. */
  readonly doubles = new Set<CommandEntry>();
  /** Whether a tool ran a command that the agent did not name. */
  hidesCommands = false;
  /** Whether the turn was cut short. Calls that end afterwards did not end by themselves. */
  isCutShort = false;
  readonly #record: TurnRecord;
  readonly #open = new Map<string, OpenCall>();

  constructor(record: TurnRecord) {
    this.#record = record;
  }

  take(update: ToolUpdate, at: number): void {
    if (this.isCutShort) return;
    const { toolCallId: id, status, content, rawInput } = update;
    const call = this.#open.get(id) ?? this.#add(id, update, at);
    if (!call) return;
    call.kind = update.kind ?? call.kind;
    if (update.title) call.title = titleOf(update.title);
    if (content?.some(({ type }) => type === 'terminal')) this.#isTerminal(id, call);
    if (call.recordedAs === undefined && isGiven(rawInput)) this.#begin(id, call, rawInput, at);
    if (status === 'completed' || status === 'failed') this.#end(id, call, update, at);
  }

  #add(id: string, { title, kind }: ToolUpdate, at: number): OpenCall | undefined {
    if (this.#open.size >= acpMessages.count.tools) {
      this.#record.isWhole = false;
      return undefined;
    }
    const call = { at, kind: kind ?? undefined, title: titleOf(title ?? ''), recordedAs: undefined };
    this.#open.set(id, call);
    return call;
  }

  #isTerminal(id: string, call: OpenCall): void {
    if (call.entry) this.doubles.add(call.entry);
    if (call.recordedAs === 'command') this.#record.endCommand(id, { at: call.at });
    call.recordedAs = 'terminal';
  }

  /**
   * Some agents give the input piece by piece: a call that runs a command is recorded once its command is
   * known.
   */
  #begin(id: string, call: OpenCall, input: unknown, at: number): void {
    const command = call.kind === 'execute' ? commandOf(input) : undefined;
    if (command !== undefined) {
      call.recordedAs = 'command';
      call.entry = this.#record.beginCommand(id, command, at);
    } else if (call.kind !== 'execute') this.#beginTool(id, call, input);
  }

  #beginTool(id: string, call: OpenCall, input: unknown): void {
    call.recordedAs = 'tool';
    this.#record.beginTool(id, call.title || call.kind || 'tool', input, call.at);
  }

  #end(id: string, call: OpenCall, update: ToolUpdate, at: number): void {
    this.#open.delete(id);
    if (call.recordedAs === 'terminal') return;
    if (call.recordedAs === undefined) {
      this.hidesCommands ||= call.kind === 'execute';
      this.#beginTool(id, call, {});
    }
    const raw = Output.safeParse(update.rawOutput).data;
    const text = (update.content ?? []).map((part) => part.content?.text ?? '').join('');
    const output = raw?.output ?? text;
    const failed = update.status === 'failed';
    if (call.recordedAs === 'command') {
      const exitCode = raw?.exitCode ?? raw?.exit_code ?? raw?.metadata?.exit ?? undefined;
      this.#record.endCommand(id, { at, exitCode, output });
    } else this.#record.endTool(id, { at, output, failed });
  }
}

function isGiven(input: unknown): boolean {
  return typeof input === 'object' && input !== null && Object.keys(input).length > 0;
}

function commandOf(input: unknown): string | undefined {
  const { data } = Input.safeParse(input);
  if (!data) return undefined;
  const { command } = data;
  return typeof command === 'string' ? command : (scriptOfShell(command) ?? command.join(' '));
}

function titleOf(title: string): string {
  return beginningOf(title, acpMessages.bytes.id);
}

const Text = z.object({ type: z.literal('text'), text: z.string() });
const Chunk = z.object({ messageId: z.string().nullish(), content: z.looseObject({ type: z.string() }) });
const Plan = z.object({ entries: z.array(z.object({ content: z.string(), status: z.string().optional() })) });
const Params = z.object({
  sessionId: z.string(),
  update: z.looseObject({ sessionUpdate: z.string() }),
});

type Spoken = 'message' | 'thought';

/** Puts an agent's `session/update` notifications into the record of a turn. */
export class Updates {
  readonly tools: ToolCalls;
  readonly #record: TurnRecord;
  /** The message or thought that the agent is sending, in pieces. */
  #speaking: { kind: Spoken; id: string | undefined; text: string; at: number } | undefined;

  constructor(record: TurnRecord) {
    this.#record = record;
    this.tools = new ToolCalls(record);
  }

  /** Throws a `ZodError` if an update of a known kind has another shape. */
  take(params: unknown, at: number): void {
    const { update } = Params.parse(params);
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
        this.#speak('message', Chunk.parse(update), at);
        break;
      case 'agent_thought_chunk':
        this.#speak('thought', Chunk.parse(update), at);
        break;
      case 'tool_call':
      case 'tool_call_update':
        this.#flush();
        this.tools.take(ToolUpdate.parse(update), at);
        break;
      case 'plan':
        this.#flush();
        this.#record.note(planText(Plan.parse(update)), at);
    }
  }

  /** The turn is over. */
  end(): void {
    this.#flush();
  }

  #speak(kind: Spoken, { messageId, content }: z.infer<typeof Chunk>, at: number): void {
    const { data } = Text.safeParse(content);
    if (!data) return;
    const id = messageId ?? undefined;
    if (this.#speaking?.kind !== kind || this.#speaking.id !== id) {
      this.#flush();
      this.#speaking = { kind, id, text: '', at };
    }
    const room = acpMessages.bytes.text - this.#speaking.text.length;
    if (data.text.length > room) this.#record.isWhole = false;
    this.#speaking.text += beginningOf(data.text, room);
  }

  #flush(): void {
    if (!this.#speaking) return;
    const { kind, text, at } = this.#speaking;
    this.#speaking = undefined;
    if (kind === 'message') this.#record.message(text, at);
    else if (text.trim() !== '') this.#record.note(`thinks: ${text}`, at);
  }
}

function planText({ entries }: z.infer<typeof Plan>): string {
  const lines = entries.map(({ content, status = 'pending' }) => `${content} (${status})`);
  return ['plans:', ...lines].join('\n');
}
