import { z } from 'zod';

/**
 * The lines of `stream: jsonl`: what a program of a `command` profile prints to say what it does. The JSON
 * Schema for authors of such programs is generated from it.
 */

const Time = z.number().min(0).optional().describe('Epoch milliseconds. Default: when the line arrives.');
const Id = z
  .string()
  .max(200)
  .optional()
  .describe('A name for a later `result`. Without it, the line itself has the result.');
const Tokens = z.int().min(0);

const result = {
  finishedAt: Time,
  exitCode: z.int().optional().describe('Of a command. Leave it out if it is not known.'),
  output: z.string().optional(),
  outputTruncated: z.boolean().optional().describe('Whether the output was cut. Default: false.'),
  failed: z.boolean().optional().describe('Of a tool.'),
};

/** One line. Other members, and lines of other types, are ignored. */
export const StreamLine = z
  .discriminatedUnion('type', [
    z
      .object({ type: z.literal('session'), version: z.string().max(200).optional() })
      .describe('The version of the program.'),
    z
      .object({ type: z.literal('command'), command: z.string(), id: Id, startedAt: Time, ...result })
      .describe('A command that the agent ran, or begins to run if `id` names it.'),
    z
      .object({
        type: z.literal('tool'),
        name: z.string(),
        input: z.unknown().optional(),
        id: Id,
        startedAt: Time,
        ...result,
      })
      .describe('Another tool that the agent used, or begins to use if `id` names it.'),
    z
      .object({ type: z.literal('result'), id: z.string().max(200), ...result })
      .describe('How a command or a tool with this `id` ended.'),
    z
      .object({ type: z.literal('message'), text: z.string(), at: Time })
      .describe('A message of the agent. The last one is its final message.'),
    z
      .object({ type: z.literal('note'), text: z.string(), at: Time })
      .describe('A remark, such as a thought or a retry.'),
    z
      .object({
        type: z.literal('usage'),
        inputTokens: Tokens.describe('Cached ones included.'),
        outputTokens: Tokens,
        cacheReadTokens: Tokens.optional(),
        cacheWriteTokens: Tokens.optional(),
      })
      .describe('Tokens that the agent counted since the last line of this type.'),
    z
      .object({
        type: z.literal('end'),
        status: z.enum(['done', 'failed', 'model-failed']),
        message: z.string().optional(),
      })
      .describe('How the turn ended. Without this line, the exit code says it.'),
  ])
  .meta({ title: 'A line of stream: jsonl' });
export type StreamLine = z.infer<typeof StreamLine>;

/** A stream that the programs of a profile may print. */
export interface StreamOffer {
  name: string;
  /** Whether it always reports the commands that ran. */
  reportsCommands: boolean;
}
