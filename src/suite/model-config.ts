import { z } from 'zod';
import { Duration } from './quantities.ts';

/** The protocols in which models are spoken to. */
export const wires = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const;
export type Wire = (typeof wires)[number];

const WireName = z.enum(wires);
const Rate = z.number().nonnegative();
const HeaderNames = z.record(z.string(), z.string());

/** USD for a million tokens, and the day they were read. */
export const Prices = z.strictObject({
  date: z.iso.date().meta({ description: 'The day these prices were read; kept with every cost.' }),
  input: Rate,
  output: Rate,
  cacheRead: Rate.optional(),
  cacheWrite: Rate.optional(),
});
export type Prices = z.infer<typeof Prices>;

const shared = {
  aliases: z
    .array(z.string().min(1))
    .default([])
    .meta({ description: 'Other names that a harness may ask for it by.' }),
  prices: Prices.optional(),
  contextWindow: z
    .int()
    .positive()
    .optional()
    .meta({ description: 'Tokens; for harnesses that want to know.' }),
  maxOutputTokens: z.int().positive().optional(),
  record: z
    .enum(['metadata', 'full'])
    .default('metadata')
    .meta({ description: 'What is kept of every exchange: its metadata, or its bodies as well.' }),
  hostedTools: z.enum(['deny', 'allow']).default('deny').meta({
    description: "Tools that run at the model's provider, such as web search: a way out of a sealed sandbox.",
  }),
  requestMembers: z.array(z.string().min(1)).default([]).meta({
    description:
      'Members of a request that this server takes besides those that Offsite knows; others are refused.',
  }),
};

const HttpModel = z.strictObject({
  wire: z
    .union([WireName, z.array(WireName).min(1)], {
      error: `expected ${wires.join(', ')}, or a list of them`,
    })
    .transform((wire): Wire[] => (Array.isArray(wire) ? wire : [wire])),
  baseUrl: z.url({ protocol: /^https?$/ }).meta({
    description: 'Where its API begins, as its own documentation says; with /v1 where that has it.',
  }),
  model: z
    .string()
    .min(1)
    .optional()
    .meta({ description: "The upstream's name for it. Default: the name here." }),
  apiKeyEnv: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'The name of the environment variable that holds its key.' }),
  auth: z.enum(['bearer', 'x-api-key', 'api-key']).optional().meta({
    description: 'The header that carries the key. Default: x-api-key for anthropic-messages, else bearer.',
  }),
  headers: HeaderNames.default({}).meta({
    description: 'Headers to add to every request; none may be secret.',
  }),
  query: HeaderNames.default({}).meta({ description: 'Query parameters to add, such as api-version.' }),
  maxParallel: z.int().min(1).optional().meta({ description: 'Requests at a time, over all trials.' }),
  headersTimeout: Duration.optional().meta({
    description: 'How long an answer may take to begin. Default: no limit of its own.',
  }),
  ...shared,
});

const ScriptedModel = z.strictObject({
  scripted: z
    .string()
    .min(1)
    .meta({ description: 'A YAML file of turns beside this one; it answers in all wires.' }),
  ...shared,
});

/** A model of `offsite.yaml`: one reached over HTTP, or one that answers from a file. */
export const ModelConfig = z.union([HttpModel, ScriptedModel], {
  error: 'expected {wire, baseUrl, …} or {scripted: file}',
});
export type HttpModel = z.infer<typeof HttpModel>;
export type ScriptedModel = z.infer<typeof ScriptedModel>;
export type ModelConfig = z.infer<typeof ModelConfig>;

/** What a trial, or a whole batch, may use. What is left out is unlimited. */
export const Budget = z.strictObject({
  tokens: z.int().positive().optional(),
  usd: z.number().positive().optional(),
  requests: z.int().positive().optional(),
  time: Duration.optional(),
});
export type Budget = z.infer<typeof Budget>;
