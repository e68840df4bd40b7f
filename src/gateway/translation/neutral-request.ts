import { hash } from 'node:crypto';
import { z } from 'zod';
import { isObject, parsed } from '../wires/lenient.ts';
import type { Losses, LossKind } from './losses.ts';

/** Members of a request that a wire may lack, each with the kind of its loss. */
const optional = {
  seed: 'sampling',
  presencePenalty: 'sampling',
  frequencyPenalty: 'sampling',
  topK: 'sampling',
  parallelCalls: 'tool option',
} as const satisfies Partial<Record<keyof NeutralRequest, LossKind>>;

/** Leaves out members that a wire does not have. */
export function dropUnsupported(
  request: NeutralRequest,
  members: readonly (keyof typeof optional)[],
  losses: Losses,
): void {
  for (const name of members) {
    const value = request[name];
    if (value !== undefined) losses.drop(name, optional[name]);
  }
}

/**
 * The system texts at the beginning, and all other messages. A system text in the middle stays there, as the
 * user's: many chat templates fail if a system message is not the first.
 */
export function splitSystem(
  all: readonly NeutralMessage[],
  losses: Losses,
): { system: string[]; messages: Exclude<NeutralMessage, { from: 'system' }>[] } {
  const first = all.findIndex(({ from }) => from !== 'system');
  const system = all.slice(0, first === -1 ? all.length : first);
  const rest = first === -1 ? [] : all.slice(first);
  return {
    system: system.flatMap((message) =>
      message.from === 'system' && message.text !== '' ? [message.text] : [],
    ),
    messages: rest.map((message) => {
      if (message.from !== 'system') return message;
      losses.drop('messages[].role', 'order');
      return { from: 'user', parts: [{ type: 'text', text: message.text }] };
    }),
  };
}

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

/** The arguments of a tool whose client expects text: the text as one argument. */
export const freeFormParameters = {
  type: 'object',
  properties: { input: { type: 'string' } },
  required: ['input'],
};

export function freeFormArguments(input: string): string {
  return JSON.stringify({ input });
}

/** The text in the arguments of a free-form tool, whatever the model wrote. */
export function freeFormInput(given: string): string {
  const value = parsed(given);
  return isObject(value) && typeof value.input === 'string' ? value.input : given;
}

export function isFreeFormTool(request: NeutralRequest, name: string): boolean {
  return toolNamed(request, name)?.freeForm === true;
}

/** Servers take tool names up to this length. */
const nameLength = 64;

/** One name for a tool of a group, for wires without groups. */
export function groupedName(group: string, tool: string): string {
  const name = `${group}__${tool}`;
  if (name.length <= nameLength) return name;
  const end = hash('sha256', name).slice(0, 12);
  return `${name.slice(0, nameLength - end.length - 1)}_${end}`;
}

export function toolNamed({ tools }: NeutralRequest, name: string): NeutralTool | undefined {
  return tools.find((tool) => tool.name === name);
}
