import { z } from 'zod';
import type { LineTaker } from './cli-stream.ts';
import { modelFailure, type TurnRecord, type TurnStatus } from './turn-record.ts';

const Begin = z.object({ session: z.string() });
const Text = z.object({ text: z.string() });
const CommandStart = z.object({ id: z.string(), command: z.string() });
const CommandEnd = z.object({
  id: z.string(),
  output: z.string(),
  truncated: z.boolean().optional(),
  /** Absent if it is not known, as after a kill. */
  exitCode: z.number().optional(),
});
const ToolStart = z.object({ id: z.string(), name: z.string(), input: z.unknown() });
const ToolEnd = z.object({ id: z.string(), output: z.string().optional(), failed: z.boolean() });
const Usage = z.object({ input: z.number(), output: z.number(), cacheRead: z.number() });
const End = z.object({ status: z.enum(['done', 'agent-failed', 'model-failed']), message: z.string() });

/**
 * Reads what a driver prints. A driver is a Python program of Offsite's that runs a CLI without a stream in
 * the sandbox.
 */
export function driverLines(record: TurnRecord): LineTaker {
  return (line, at) => {
    switch (line.type) {
      case 'begin':
        return record.begin(Begin.parse(line).session);
      case 'message':
        return record.message(Text.parse(line).text, at);
      case 'note':
        return record.note(Text.parse(line).text, at);
      case 'command': {
        const { id, command } = CommandStart.parse(line);
        return record.beginCommand(id, command, at);
      }
      case 'command_end': {
        const { id, ...ended } = CommandEnd.parse(line);
        return record.endCommand(id, { at, ...ended });
      }
      case 'tool': {
        const { id, name, input } = ToolStart.parse(line);
        return record.beginTool(id, name, input, at);
      }
      case 'tool_end': {
        const { id, ...ended } = ToolEnd.parse(line);
        return record.endTool(id, { at, ...ended });
      }
      case 'usage': {
        const { input, output, cacheRead } = Usage.parse(line);
        return record.addUsage({
          inputTokens: input,
          outputTokens: output,
          cacheReadTokens: cacheRead,
          totalTokens: input + output,
        });
      }
      case 'end':
        record.status = statusOf(End.parse(line));
    }
  };
}

function statusOf({ status, message }: z.infer<typeof End>): TurnStatus {
  if (status === 'done') return { kind: 'done' };
  return status === 'model-failed' ? modelFailure(message) : { kind: status, message };
}
