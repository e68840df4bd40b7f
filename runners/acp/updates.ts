import { z } from 'zod';
import { acpMessages } from '../../src/bounds/sandbox.ts';
import { beginningOf } from '../../src/harness/beginning-of.ts';
import type { TurnRecord } from '../../src/harness/turn-record.ts';
import { ToolCalls, ToolUpdate } from './tool-calls.ts';

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
