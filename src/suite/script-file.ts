import { z } from 'zod';
import { wires } from './model-config.ts';
import { Duration } from './quantities.ts';

/**
 * The file of a scripted model: the turns it answers with, and when. `docs/models.md` describes it for
 * people.
 */

const Pattern = z.string().refine(isPattern, 'expected a JavaScript regular expression');

/** A plain string is looked for as it stands. */
const TextMatch = z.union(
  [z.string().min(1), z.strictObject({ contains: z.string().min(1) }), z.strictObject({ matches: Pattern })],
  { error: 'expected a text, {contains: text} or {matches: expression}' },
);
export type TextMatch = z.infer<typeof TextMatch>;

const When = z.strictObject({
  user: TextMatch.optional().meta({ description: 'In the last message of the user.' }),
  anyUser: TextMatch.optional().meta({ description: 'In any message of the user.' }),
  result: TextMatch.optional().meta({
    description: 'In a tool result that came since the model spoke last.',
  }),
  anyResult: TextMatch.optional().meta({ description: 'In any tool result of the conversation.' }),
  system: TextMatch.optional().meta({ description: 'In the system text, the developer messages included.' }),
  model: TextMatch.optional().meta({ description: 'In the name of the model that was asked for.' }),
  wire: z.enum(wires).optional(),
  turn: z.int().min(1).optional().meta({ description: 'Which answer of this conversation it is, from 1.' }),
  last: z.enum(['user', 'tool']).optional().meta({ description: 'Whose message is the last one.' }),
  tools: z.boolean().optional().meta({ description: 'Whether the request offers tools.' }),
});
export type When = z.infer<typeof When>;

const Tokens = z.int().nonnegative();

const ScriptUsage = z.union(
  [
    z.literal('none'),
    z.strictObject({
      input: Tokens.optional().meta({ description: 'All of the prompt, cached tokens included.' }),
      output: Tokens.optional().meta({ description: 'Reasoning included.' }),
      cacheRead: Tokens.optional(),
      cacheWrite: Tokens.optional(),
      reasoning: Tokens.optional(),
    }),
  ],
  { error: 'expected none or {input, output, cacheRead, cacheWrite, reasoning}' },
);
export type ScriptUsage = z.infer<typeof ScriptUsage>;

const Times = z.int().min(1).optional().meta({
  description: 'So often for one conversation, then the turn answers. Default: always.',
});

const Trouble = z.union(
  [
    z.strictObject({
      error: z.strictObject({
        status: z.int().min(400).max(599),
        message: z.string().min(1).default('The script says that this request fails.'),
        retryAfter: z
          .number()
          .nonnegative()
          .optional()
          .meta({ description: 'Seconds, for the header Retry-After.' }),
      }),
      times: Times,
    }),
    z.strictObject({
      cut: z.strictObject({
        afterBytes: z.int().nonnegative().optional(),
        afterEvents: z.int().nonnegative().optional(),
        cleanly: z
          .boolean()
          .default(false)
          .meta({ description: 'Ends as if that were all, instead of breaking the connection.' }),
      }),
      times: Times,
    }),
    z.strictObject({ garbage: z.literal(true), times: Times }),
    z.strictObject({ hang: z.literal(true), times: Times }),
    z.strictObject({ neverEnding: z.literal(true), times: Times }),
  ],
  { error: 'expected one of error, cut, garbage, hang and neverEnding, with times where it shall pass' },
);
export type Trouble = z.infer<typeof Trouble>;

const ScriptTurn = z.strictObject({
  when: When.prefault({}).meta({ description: 'All of it must hold. Default: always.' }),
  repeat: z
    .boolean()
    .default(false)
    .meta({ description: 'May answer any number of times in a conversation, not once.' }),
  text: z.string().optional(),
  run: z
    .union([z.string().min(1), z.array(z.string().min(1)).min(1)], {
      error: 'expected a command, or a list of commands',
    })
    .transform((run) => (Array.isArray(run) ? run : [run]))
    .optional()
    .meta({ description: "Commands for the harness's own shell tool, whatever it is called; a call each." }),
  calls: z
    .array(
      z.strictObject({
        tool: z.string().min(1),
        arguments: z
          .union([z.record(z.string(), z.unknown()), z.string()], {
            error: 'expected arguments by name, or a text to send as it stands',
          })
          .default({}),
      }),
    )
    .min(1)
    .optional(),
  usage: ScriptUsage.optional().meta({
    description: 'Default: reckoned from the lengths, four characters a token. none: left out.',
  }),
  stop: z
    .enum(['length', 'refusal'])
    .optional()
    .meta({ description: 'Why it stopped, where that is not the usual.' }),
  delay: Duration.optional().meta({ description: 'Before the answer begins.' }),
  stream: z
    .strictObject({
      characters: z.int().min(1).default(24).meta({ description: 'Of text or arguments in one event.' }),
      pause: Duration.optional().meta({ description: 'After each event.' }),
    })
    .prefault({}),
  trouble: Trouble.optional(),
});
export type ScriptTurn = z.infer<typeof ScriptTurn>;

export const ScriptFile = z
  .strictObject({
    turns: z.array(ScriptTurn).min(1),
    otherwise: z
      .string()
      .default('The script says nothing more.')
      .meta({ description: 'What is answered where no turn fits, as to side questions without tools.' }),
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
