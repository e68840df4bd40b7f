import { z } from 'zod';
import { WireName, type Wires, wires } from '../record/wires.ts';
import { Duration } from './quantities.ts';
import { Count, NonEmpty } from './text-source.ts';
import { VariableName } from './variables.ts';

export { type Wire, type Wires, wires } from '../record/wires.ts';

const Rate = z.number().nonnegative();
const HeaderNames = z.record(z.string(), z.string());

/** USD for a million tokens, and the day on which these prices were read. */
export const Prices = z.strictObject({
  date: z.iso.date().describe('The day on which these prices were read. It is kept with every cost.'),
  input: Rate.describe('USD for a million tokens of prompts, without cached ones.'),
  output: Rate.describe('USD for a million generated tokens.'),
  cacheRead: Rate.optional().describe('USD for a million tokens that the cache had. Default: as `input`.'),
  cacheWrite: Rate.optional().describe('USD for a million tokens that the cache took. Default: as `input`.'),
});
export type Prices = z.infer<typeof Prices>;

const shared = {
  aliases: z.array(NonEmpty).default([]).describe('Other names that a harness may use for it.'),
  prices: Prices.optional().describe('What the model costs, in USD for a million tokens.'),
  contextWindow: z.int().positive().optional().describe('In tokens, for harnesses that use it.'),
  maxOutputTokens: z
    .int()
    .positive()
    .optional()
    .describe('The most tokens of an answer, for harnesses that ask for it.'),
  record: z
    .enum(['metadata', 'full'])
    .default('metadata')
    .describe('What is kept of every exchange: only its metadata, or also its bodies.'),
  hostedTools: z
    .enum(['deny', 'allow'])
    .default('deny')
    .describe(
      "Tools that run at the model's provider, such as web search. They are a way out of a sealed sandbox.",
    ),
  requestMembers: z
    .array(NonEmpty)
    .default([])
    .describe('Members of a request that this server accepts and Offsite does not know. Others are refused.'),
  translation: z
    .enum(['strict', 'lenient'])
    .default('lenient')
    .describe(
      'For harnesses that speak another wire: whether a request that the wire of the model cannot carry ' +
        'completely is refused, or sent without what does not change its meaning.',
    ),
};

const SpokenWires = z
  .union([WireName, z.array(WireName).min(1)], {
    error: `expected ${wires.join(', ')}, or a list of them`,
  })
  .transform((wire) => [wire].flat() as unknown as Wires);

/** Requests in flight at a model that says `maxParallel: auto` without a number. */
const usualMost = 32;

/** A limit that adapts to what the model answers well, up to `most` requests in flight. */
const AutoLimit = z.strictObject({
  auto: z.literal(true).describe('The limit adapts to what the model answers well.'),
  most: Count.max(1_000)
    .default(usualMost)
    .describe(`The limit never exceeds this number. Default: ${usualMost}.`),
});
export type AutoLimit = z.infer<typeof AutoLimit>;

const MaxParallel = z
  .union([Count, z.literal('auto'), AutoLimit], {
    error: 'expected a whole number from 1, auto, or {auto: true, most: number}',
  })
  .transform((limit): number | AutoLimit => (limit === 'auto' ? { auto: true, most: usualMost } : limit));

/** The path of a request, which people copy together with the base URL. */
const requestPath =
  /\/(chat\/completions|completions|responses|messages(\/count_tokens)?|models\/[^/]+:\w+)\/*$|(?<=\/v\d\w*)\/models\/*$/;

/** Splits an address at the path of a request, if it has one: the base URL, and that path. */
export function splitAddress(url: string): { base: string; path: string } {
  const at = url.search(requestPath);
  return at === -1 ? { base: url, path: '' } : { base: url.slice(0, at), path: url.slice(at) };
}

function baseOnly({ value, issues }: z.core.ParsePayload<string>): void {
  const { path } = splitAddress(value);
  if (path === '') return;
  const message = `expected the base address of the API: leave out ${path}`;
  issues.push({ code: 'custom', input: value, message });
}

/** The headers that can carry a key; `bearer` is `authorization`. */
export const keyHeaders = ['bearer', 'x-api-key', 'api-key', 'x-goog-api-key'] as const;

const HttpModel = z.strictObject({
  wire: SpokenWires.describe('The API that it speaks, or a list of them with the preferred one first.'),
  baseUrl: z
    .url({ protocol: /^https?$/ })
    .check(baseOnly)
    .describe('The base URL of its API, as in its documentation, with /v1 if that includes it.'),
  model: NonEmpty.optional().describe("The provider's name for it. Default: the name here."),
  apiKeyEnv: VariableName.optional().describe('The name of the environment variable that holds its key.'),
  auth: z
    .enum(keyHeaders)
    .optional()
    .describe(
      'The header that carries the key. Default: x-api-key for anthropic-messages, x-goog-api-key for gemini, ' +
        'otherwise bearer.',
    ),
  headers: HeaderNames.default({}).describe('Headers to add to every request. They must not be secret.'),
  query: HeaderNames.default({}).describe('Query parameters to add, such as api-version.'),
  maxParallel: MaxParallel.optional().describe(
    'The maximum number of requests in flight, over all trials. auto: as many as the model answers well.',
  ),
  without: z
    .array(NonEmpty)
    .default([])
    .describe(
      'Options of a request that its server does not accept, such as reasoning_effort, and forms of a ' +
        'conversation, such as long_call_ids. They are left out of every request. Offsite learns most of them ' +
        'from the refusals of the server.',
    ),
  headersTimeout: Duration.optional().describe(
    'How long an answer may take to begin. Default: no separate limit.',
  ),
  ...shared,
});

const ScriptedModel = z.strictObject({
  scripted: NonEmpty.describe('A YAML file of turns beside this file. The model answers on all wires.'),
  wire: SpokenWires.optional().describe('The wires that it speaks, to rehearse translation. Default: all.'),
  ...shared,
});

const ReplayedModel = z.strictObject({
  replay: NonEmpty.describe('A cassette beside this file, which `offsite export --cassette` wrote.'),
  wire: SpokenWires.optional().describe(
    'The wires that harnesses use to ask it. Default: all. Any wire gets the recorded answers.',
  ),
  ...shared,
});

/** A model of `offsite.yaml`: one that is reached over HTTP, or one that answers from a file. */
export const ModelConfig = z.union([HttpModel, ScriptedModel, ReplayedModel], {
  error: 'expected {wire, baseUrl, …}, {scripted: file} or {replay: file}; `offsite models add` writes one',
});
export type HttpModel = z.infer<typeof HttpModel>;
export type ScriptedModel = z.infer<typeof ScriptedModel>;
export type ModelConfig = z.infer<typeof ModelConfig>;

/** Where a model answers from: its address, or its file. */
export function whereOf(model: ModelConfig): string {
  return 'scripted' in model ? model.scripted : 'replay' in model ? model.replay : model.baseUrl;
}

/** The wires that a model speaks, its preferred one first. */
export function wiresOf(model: ModelConfig): Wires {
  return model.wire ?? wires;
}

/** The most requests that a model may ever have in flight. */
export function mostParallel(limit: number | AutoLimit): number {
  return typeof limit === 'number' ? limit : limit.most;
}

/** USD that models with prices may use, unless the file says otherwise. */
export const defaultUsd = { trial: 10, batch: 200 } as const;

/** What a trial, or a whole batch, may use. A missing limit means unlimited. */
export const Budget = z.strictObject({
  tokens: z.int().positive().optional().describe('The most tokens, of prompts and answers together.'),
  usd: z
    .union([z.number().positive(), z.literal('unlimited').transform(() => Number.POSITIVE_INFINITY)])
    .optional()
    .meta({
      description:
        'The most cost in USD, by the configured prices. Default, if a model has prices: ' +
        `${defaultUsd.trial} for a trial and ${defaultUsd.batch} for a batch. \`unlimited\`: no limit.`,
    }),
  requests: z.int().positive().optional().describe('The most requests.'),
  time: Duration.optional().describe('The longest time, from the first request.'),
});
export interface Budget extends z.infer<typeof Budget> {
  /** Set if the file has no limit in USD. Then it holds for the models that have prices. */
  usdIsDefault?: true;
}
