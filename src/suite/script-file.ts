import { z } from 'zod';
import { wires } from './model-config.ts';
import { Duration } from './quantities.ts';

/**
 * The schema of a scripted model's file: the turns that it answers with, and their conditions.
 * `docs/models.md` describes it for users.
 */

const Pattern = z
  .string()
  .refine(isPattern, 'expected a JavaScript regular expression, in which (?i:text) ignores case');

/** A plain string must occur in the text literally. */
const TextMatch = z.union(
  [
    z.string().min(1),
    z.strictObject({ contains: z.string().min(1).meta({ description: 'The text contains this.' }) }),
    z.strictObject({
      matches: Pattern.meta({
        description: 'A regular expression of JavaScript that matches the text; `(?i:text)` ignores case.',
      }),
    }),
  ],
  { error: 'expected a text, {contains: text} or {matches: expression}' },
);
export type TextMatch = z.infer<typeof TextMatch>;

const When = z.strictObject({
  user: TextMatch.optional().meta({ description: 'In the last message of the user.' }),
  anyUser: TextMatch.optional().meta({ description: 'In any message of the user.' }),
  result: TextMatch.optional().meta({
    description: 'In a tool result since the last answer of the model.',
  }),
  anyResult: TextMatch.optional().meta({ description: 'In any tool result of the conversation.' }),
  system: TextMatch.optional().meta({ description: 'In the system text, including developer messages.' }),
  model: TextMatch.optional().meta({ description: 'In the name of the requested model.' }),
  wire: z.enum(wires).optional().meta({ description: 'The wire that the request came over.' }),
  turn: z
    .int()
    .min(1)
    .optional()
    .meta({ description: 'The number of the answer in this conversation, from 1.' }),
  last: z.enum(['user', 'tool']).optional().meta({ description: 'The sender of the last message.' }),
  tools: z.boolean().optional().meta({ description: 'Whether the request offers tools.' }),
});
export type When = z.infer<typeof When>;

const Tokens = z.int().nonnegative();

const ScriptUsage = z.union(
  [
    z.literal('none'),
    z.strictObject({
      input: Tokens.optional().meta({ description: 'All tokens of the prompt, including cached ones.' }),
      output: Tokens.optional().meta({ description: 'Including reasoning.' }),
      cacheRead: Tokens.optional().meta({ description: 'Tokens of the prompt that the cache had.' }),
      cacheWrite: Tokens.optional().meta({ description: 'Tokens of the prompt that the cache took.' }),
      reasoning: Tokens.optional().meta({ description: 'Tokens of reasoning.' }),
    }),
  ],
  { error: 'expected none or {input, output, cacheRead, cacheWrite, reasoning}' },
);
export type ScriptUsage = z.infer<typeof ScriptUsage>;

const Times = z.int().min(1).optional().meta({
  description: 'How often this happens in one conversation before the turn answers. Default: always.',
});

const Trouble = z.union(
  [
    z.strictObject({
      error: z
        .strictObject({
          status: z.int().min(400).max(599).meta({ description: 'The HTTP status.' }),
          message: z
            .string()
            .min(1)
            .default('The script says that this request fails.')
            .meta({ description: 'The message of the error.' }),
          retryAfter: z
            .number()
            .nonnegative()
            .optional()
            .meta({ description: 'Seconds, for the header Retry-After.' }),
        })
        .meta({ description: 'An error of HTTP.' }),
      times: Times,
    }),
    z.strictObject({
      cut: z
        .strictObject({
          afterBytes: z
            .int()
            .nonnegative()
            .optional()
            .meta({ description: 'How many bytes of the answer are sent.' }),
          afterEvents: z
            .int()
            .nonnegative()
            .optional()
            .meta({ description: 'How many events of the answer are sent.' }),
          cleanly: z
            .boolean()
            .default(false)
            .meta({ description: 'Ends the answer normally instead of breaking the connection.' }),
        })
        .meta({ description: 'The answer breaks off.' }),
      times: Times,
    }),
    z.strictObject({
      garbage: z.literal(true).meta({ description: 'The answer is neither JSON nor events.' }),
      times: Times,
    }),
    z.strictObject({ hang: z.literal(true).meta({ description: 'No answer comes.' }), times: Times }),
    z.strictObject({
      neverEnding: z.literal(true).meta({ description: 'The answer never ends.' }),
      times: Times,
    }),
  ],
  { error: 'expected one of error, cut, garbage, hang and neverEnding, with times if it is to stop' },
);
export type Trouble = z.infer<typeof Trouble>;

const ScriptTurn = z.strictObject({
  when: When.prefault({}).meta({ description: 'All conditions must hold. Default: always.' }),
  repeat: z
    .boolean()
    .default(false)
    .meta({ description: 'The turn may answer any number of times in a conversation, not only once.' }),
  text: z.string().optional().meta({ description: 'What the model says.' }),
  run: z
    .union([z.string().min(1), z.array(z.string().min(1)).min(1)], {
      error: 'expected a command, or a list of commands',
    })
    .transform((run) => (Array.isArray(run) ? run : [run]))
    .optional()
    .meta({
      description:
        "Commands for the harness's own shell tool, which may have any name. Each command is a call.",
    }),
  calls: z
    .array(
      z.strictObject({
        tool: z.string().min(1).meta({ description: 'The name of the tool.' }),
        arguments: z
          .union([z.record(z.string(), z.unknown()), z.string()], {
            error: 'expected arguments by name, or a text to send unchanged',
          })
          .default({})
          .meta({ description: 'Its arguments by name, or a text to send as it is.' }),
      }),
    )
    .min(1)
    .optional()
    .meta({ description: 'Calls of tools by their names.' }),
  usage: ScriptUsage.optional().meta({
    description: 'Default: estimated from the lengths, with four characters per token. none: no usage.',
  }),
  stop: z
    .enum(['length', 'refusal'])
    .optional()
    .meta({ description: 'Why the model stopped, if not for the usual reason.' }),
  delay: Duration.optional().meta({ description: 'The time before the answer begins.' }),
  stream: z
    .strictObject({
      characters: z
        .int()
        .min(1)
        .default(24)
        .meta({ description: 'Characters of text or arguments in one event.' }),
      pause: Duration.optional().meta({ description: 'The time after each event.' }),
    })
    .prefault({})
    .meta({ description: 'How a streamed answer is cut into events.' }),
  trouble: Trouble.optional().meta({ description: 'A fault in place of the answer.' }),
});
export type ScriptTurn = z.infer<typeof ScriptTurn>;

/** What a script answers by default if no turn matches. */
export const nothingMore = 'The script says nothing more.';

export const ScriptFile = z
  .strictObject({
    turns: z
      .array(ScriptTurn)
      .default([])
      .meta({ description: 'What the model answers. The first unused turn whose conditions hold answers.' }),
    otherwise: z
      .string()
      .default(nothingMore)
      .meta({ description: 'The answer if no turn matches, for example to side questions without tools.' }),
    fillForms: z
      .boolean()
      .default(false)
      .meta({
        description:
          'Whether requests for JSON of a schema, or for the call of a certain tool, get a document that the ' +
          'schema allows, such as the best score for a judge. Turns answer all others.',
      }),
  })
  .meta({ title: 'Offsite scripted model' });
export type ScriptFile = z.infer<typeof ScriptFile>;

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u') instanceof RegExp;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
