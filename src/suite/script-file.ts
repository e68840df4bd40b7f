import { z } from 'zod';
import { wires } from './model-config.ts';
import { Duration } from './quantities.ts';
import { Count, NonEmpty } from './text-source.ts';

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
    NonEmpty,
    z.strictObject({ contains: NonEmpty.describe('The text contains this.') }),
    z.strictObject({
      matches: Pattern.describe(
        'A regular expression of JavaScript that matches the text; `(?i:text)` ignores case.',
      ),
    }),
  ],
  { error: 'expected a text, {contains: text} or {matches: expression}' },
);
export type TextMatch = z.infer<typeof TextMatch>;

const When = z.strictObject({
  user: TextMatch.optional().describe('In the last message of the user.'),
  anyUser: TextMatch.optional().describe('In any message of the user.'),
  result: TextMatch.optional().describe('In a tool result since the last answer of the model.'),
  anyResult: TextMatch.optional().describe('In any tool result of the conversation.'),
  system: TextMatch.optional().describe('In the system text, including developer messages.'),
  model: TextMatch.optional().describe('In the name of the requested model.'),
  wire: z.enum(wires).optional().describe('The wire that the request came over.'),
  turn: Count.optional().describe('The number of the answer in this conversation, from 1.'),
  last: z.enum(['user', 'tool']).optional().describe('The sender of the last message.'),
  tools: z.boolean().optional().describe('Whether the request offers tools.'),
});
export type When = z.infer<typeof When>;

const Tokens = z.int().nonnegative();

const ScriptUsage = z.union(
  [
    z.literal('none'),
    z.strictObject({
      input: Tokens.optional().describe('All tokens of the prompt, including cached ones.'),
      output: Tokens.optional().describe('Including reasoning.'),
      cacheRead: Tokens.optional().describe('Tokens of the prompt that the cache had.'),
      cacheWrite: Tokens.optional().describe('Tokens of the prompt that the cache took.'),
      reasoning: Tokens.optional().describe('Tokens of reasoning.'),
    }),
  ],
  { error: 'expected none or {input, output, cacheRead, cacheWrite, reasoning}' },
);
export type ScriptUsage = z.infer<typeof ScriptUsage>;

const Times = Count.optional().describe(
  'How often this happens in one conversation before the turn answers. Default: always.',
);

const Trouble = z.union(
  [
    z.strictObject({
      error: z
        .strictObject({
          status: z.int().min(400).max(599).describe('The HTTP status.'),
          message: NonEmpty.default('The script says that this request fails.').describe(
            'The message of the error.',
          ),
          retryAfter: z.number().nonnegative().optional().describe('Seconds, for the header Retry-After.'),
        })
        .describe('An error of HTTP.'),
      times: Times,
    }),
    z.strictObject({
      cut: z
        .strictObject({
          afterBytes: z.int().nonnegative().optional().describe('How many bytes of the answer are sent.'),
          afterEvents: z.int().nonnegative().optional().describe('How many events of the answer are sent.'),
          cleanly: z
            .boolean()
            .default(false)
            .describe('Ends the answer normally instead of breaking the connection.'),
        })
        .describe('The answer breaks off.'),
      times: Times,
    }),
    z.strictObject({
      garbage: z.literal(true).describe('The answer is neither JSON nor events.'),
      times: Times,
    }),
    z.strictObject({ hang: z.literal(true).describe('No answer comes.'), times: Times }),
    z.strictObject({
      neverEnding: z.literal(true).describe('The answer never ends.'),
      times: Times,
    }),
  ],
  { error: 'expected one of error, cut, garbage, hang and neverEnding, with times if it is to stop' },
);
export type Trouble = z.infer<typeof Trouble>;

const ScriptTurn = z.strictObject({
  when: When.prefault({}).describe('All conditions must hold. Default: always.'),
  repeat: z
    .boolean()
    .default(false)
    .describe('The turn may answer any number of times in a conversation, not only once.'),
  text: z.string().optional().describe('What the model says.'),
  run: z
    .union([NonEmpty, z.array(NonEmpty).min(1)], {
      error: 'expected a command, or a list of commands',
    })
    .transform((run) => (Array.isArray(run) ? run : [run]))
    .optional()
    .describe("Commands for the harness's own shell tool, which may have any name. Each command is a call."),
  calls: z
    .array(
      z.strictObject({
        tool: NonEmpty.describe('The name of the tool.'),
        arguments: z
          .union([z.record(z.string(), z.unknown()), z.string()], {
            error: 'expected arguments by name, or a text to send unchanged',
          })
          .default({})
          .describe('Its arguments by name, or a text to send as it is.'),
      }),
    )
    .min(1)
    .optional()
    .describe('Calls of tools by their names.'),
  usage: ScriptUsage.optional().describe(
    'Default: estimated from the lengths, with four characters per token. none: no usage.',
  ),
  stop: z
    .enum(['length', 'refusal'])
    .optional()
    .describe('Why the model stopped, if not for the usual reason.'),
  delay: Duration.optional().describe('The time before the answer begins.'),
  stream: z
    .strictObject({
      characters: Count.default(24).describe('Characters of text or arguments in one event.'),
      pause: Duration.optional().describe('The time after each event.'),
    })
    .prefault({})
    .describe('How a streamed answer is cut into events.'),
  trouble: Trouble.optional().describe('A fault in place of the answer.'),
});
export type ScriptTurn = z.infer<typeof ScriptTurn>;

/** What a script answers by default if no turn matches. */
export const nothingMore = 'The script says nothing more.';

export const ScriptFile = z
  .strictObject({
    turns: z
      .array(ScriptTurn)
      .default([])
      .describe('What the model answers. The first unused turn whose conditions hold answers.'),
    otherwise: z
      .string()
      .default(nothingMore)
      .describe('The answer if no turn matches, for example to side questions without tools.'),
    fillForms: z
      .boolean()
      .default(false)
      .describe(
        'Whether requests for JSON of a schema, or for the call of a certain tool, get a document that the ' +
          'schema allows, such as the best score for a judge. Turns answer all others.',
      ),
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
