import { z } from 'zod';
import type { LineTaker } from './cli-stream.ts';
import type { TurnRecord } from './turn-record.ts';

const Message = z.object({
  parent_tool_use_id: z.string().nullish(),
  message: z.object({ content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]) }),
  timestamp: z.iso.datetime().optional(),
  tool_use_result: z.unknown().optional(),
});
const Text = z.object({ text: z.string() });
const Use = z.object({
  id: z.string(),
  name: z.string(),
  input: z.looseObject({ command: z.unknown().optional() }),
});
const Result = z.object({
  tool_use_id: z.string(),
  content: z.unknown().optional(),
  is_error: z.boolean().nullish(),
});

/** A finished call of the tool that runs commands. */
export interface CommandResult {
  command: string;
  /** The result as the model sees it. */
  text: string;
  failed: boolean;
  /** Further details that the CLI reports, in its own format. */
  details: unknown;
}

/** How a command ended, as far as the CLI reports it. A missing field is unknown. */
export interface CommandOutcome {
  exitCode?: number | undefined;
  output: string;
  truncated?: boolean;
}

/**
 * Reads the lines `assistant` and `user`, as Claude Code and CLIs that copied its format print them: messages
 * of Anthropic's wire, with tool calls in one message and their results in the next.
 *
 * @param commandTool the name of the tool that runs commands
 */
export function messageLines(
  record: TurnRecord,
  commandTool: string,
  outcomeOf: (result: CommandResult) => CommandOutcome,
): LineTaker {
  return (line, at) => {
    const { message, parent_tool_use_id, timestamp, tool_use_result } = Message.parse(line);
    const { content } = message;
    if (typeof content === 'string') return;
    const own = timestamp === undefined ? undefined : Date.parse(timestamp);
    for (const block of content) {
      // A sub-agent's text is not addressed to the user.
      const isSpoken = line.type === 'assistant' && block.type === 'text' && parent_tool_use_id == null;
      if (isSpoken) record.message(Text.parse(block).text, at, own);
      if (block.type === 'tool_use') beginUse(Use.parse(block));
      if (block.type === 'tool_result') endUse(Result.parse(block), tool_use_result, { at, own });
    }
    function beginUse({ id, name, input }: z.infer<typeof Use>): void {
      const { command } = input;
      if (name === commandTool && typeof command === 'string') record.beginCommand(id, command, at, own);
      else record.beginTool(id, name, input, at, own);
    }
  };

  function endUse(
    { tool_use_id: id, content, is_error }: z.infer<typeof Result>,
    details: unknown,
    when: { at: number; own: number | undefined },
  ): void {
    const text = textOf(content);
    const failed = is_error === true;
    const command = record.openCommand(id);
    if (command === undefined) record.endTool(id, { ...when, output: text, failed });
    else record.endCommand(id, { ...when, ...outcomeOf({ command, text, failed, details }) });
  }
}

const Content = z.array(z.looseObject({ text: z.string().optional() }));

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  const blocks = Content.safeParse(content).data ?? [];
  return blocks.map(({ text = '' }) => text).join('');
}
