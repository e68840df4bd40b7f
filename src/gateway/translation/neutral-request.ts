import { z } from 'zod';

/**
 * A request to a model, independent of its wire, with what can be translated between the four wires. Each
 * wire has a reader, which creates it, and a writer, which converts it to that wire. Missing members were not
 * requested.
 */

const Text = z.object({ type: z.literal('text'), text: z.string() });

/** `data` is base64. A `url` is never fetched by this process. */
const Image = z.union([
  z.object({ type: z.literal('image'), mediaType: z.string(), data: z.string() }),
  z.object({ type: z.literal('image'), url: z.string() }),
]);

/** A document, such as a PDF. `data` is base64. */
const Document = z.object({
  type: z.literal('document'),
  mediaType: z.string(),
  data: z.string(),
  name: z.string().optional(),
});

/**
 * What the model thought. `signature` is opaque: the provider's proof, or the encrypted thought itself. It
 * belongs to the text, or to the part that follows. `redacted`: there is no text for anyone to read.
 */
const Reasoning = z.object({
  type: z.literal('reasoning'),
  text: z.string(),
  signature: z.string().optional(),
  redacted: z.literal(true).optional(),
});

/** `arguments`: JSON text of an object, as the model wrote it. */
const Call = z.object({
  type: z.literal('call'),
  id: z.string(),
  name: z.string(),
  arguments: z.string(),
});

const RefusalText = z.object({ type: z.literal('refusal'), text: z.string() });

export const ModelPart = z.union([Text, RefusalText, Reasoning, Call]);
export type ModelPart = z.infer<typeof ModelPart>;
const Content = z.union([Text, Image, Document]);
export type Content = z.infer<typeof Content>;

/** System texts are messages: some clients send them in the middle of a conversation. */
const Message = z.discriminatedUnion('from', [
  z.object({ from: z.literal('system'), text: z.string() }),
  z.object({ from: z.literal('user'), parts: z.array(Content) }),
  z.object({ from: z.literal('model'), parts: z.array(ModelPart) }),
  z.object({ from: z.literal('tool'), callId: z.string(), parts: z.array(Content), failed: z.boolean() }),
]);
export type NeutralMessage = z.infer<typeof Message>;

const Tool = z.object({
  name: z.string(),
  description: z.string().optional(),
  /** JSON Schema of its arguments. */
  parameters: z.record(z.string(), z.unknown()),
  strict: z.literal(true).optional(),
  /** The group and the name in it by which the client calls the tool. */
  group: z.object({ name: z.string(), tool: z.string() }).optional(),
  /** Its client expects text, not JSON. Here the text is the argument `input`. */
  freeForm: z.literal(true).optional(),
});
export type NeutralTool = z.infer<typeof Tool>;

export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

export const NeutralRequest = z.object({
  model: z.string(),
  streamed: z.boolean(),
  /** Whether a stream ends with its usage, where that must be asked for. */
  usageAsked: z.boolean(),
  messages: z.array(Message),
  tools: z.array(Tool),
  toolChoice: z.union([z.enum(['auto', 'none', 'required']), z.object({ tool: z.string() })]).optional(),
  parallelCalls: z.boolean().optional(),
  stop: z.array(z.string()),
  maxTokens: z.int().optional(),
  temperature: z.number().optional(),
  topP: z.number().optional(),
  topK: z.number().optional(),
  seed: z.number().optional(),
  presencePenalty: z.number().optional(),
  frequencyPenalty: z.number().optional(),
  /** `budget` in tokens. */
  reasoning: z.object({ effort: z.enum(efforts).optional(), budget: z.number().optional() }).optional(),
  /** The answer is JSON, of this schema if there is one. */
  format: z
    .object({
      schema: z.record(z.string(), z.unknown()).optional(),
      name: z.string().optional(),
      strict: z.boolean().optional(),
    })
    .optional(),
});
export type NeutralRequest = z.infer<typeof NeutralRequest>;
