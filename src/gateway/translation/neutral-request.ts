import { hash } from 'node:crypto';
import {
  fields,
  inlineData,
  isObject,
  type JsonObject,
  member,
  numberIn,
  parsed,
  stringIn,
} from '../wires/lenient.ts';
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

type Text = { type: 'text'; text: string };

/** `data` is base64. A `url` is never fetched by this process. */
type Image = { type: 'image' } & ({ mediaType: string; data: string } | { url: string });

/** A document, such as a PDF. `data` is base64. */
type Document = { type: 'document'; mediaType: string; data: string; name?: string };

export type Content = Text | Image | Document;

export type ModelPart =
  | Text
  | { type: 'refusal'; text: string }
  /**
   * What the model thought. `signature` is opaque: the provider's proof, or the encrypted thought itself. It
   * belongs to the text, or to the part that follows. `redacted`: there is no text for anyone to read.
   */
  | { type: 'reasoning'; text: string; signature?: string; redacted?: true }
  /** `arguments`: JSON text of an object, as the model wrote it. */
  | { type: 'call'; id: string; name: string; arguments: string };

/** System texts are messages: some clients send them in the middle of a conversation. */
export type NeutralMessage =
  | { from: 'system'; text: string }
  | { from: 'user'; parts: Content[] }
  | { from: 'model'; parts: ModelPart[] }
  | { from: 'tool'; callId: string; parts: Content[]; failed: boolean };

export interface NeutralTool {
  name: string;
  description?: string;
  /** JSON Schema of its arguments. */
  parameters: JsonObject;
  strict?: true;
  /** The group and the name in it by which the client calls the tool. */
  group?: { name: string; tool: string };
  /** Its client expects text, not JSON. Here the text is the argument `input`. */
  freeForm?: true;
}

export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

export interface NeutralRequest {
  model: string;
  streamed: boolean;
  /** Whether a stream ends with its usage, where that must be asked for. */
  usageAsked: boolean;
  messages: NeutralMessage[];
  tools: NeutralTool[];
  toolChoice?: 'auto' | 'none' | 'required' | { tool: string };
  parallelCalls?: boolean;
  stop: string[];
  maxTokens?: number;
  temperature?: number;
  topP?: number;
  topK?: number;
  seed?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  /** `budget` in tokens. */
  reasoning?: { effort?: (typeof efforts)[number]; budget?: number };
  /** The answer is JSON, of this schema if there is one. */
  format?: { schema?: JsonObject; name?: string; strict?: boolean };
}

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

/** What the readers and writers of requests share. Readers throw a GatewayRefusal. */

const sampling = ['temperature', 'topP', 'topK', 'seed', 'presencePenalty', 'frequencyPenalty'] as const;
type Sampling = Partial<Pick<NeutralRequest, (typeof sampling)[number]>>;

/** OpenAI's and Anthropic's spelling. Gemini's is that of the neutral form. */
function withUnderscores(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The numbers that control sampling in a request of a client. */
export function samplingIn(
  body: JsonObject,
  names: readonly (keyof Sampling)[] = sampling,
  spell: (name: string) => string = withUnderscores,
): Sampling {
  return fields(Object.fromEntries(names.map((name) => [name, numberIn(body, spell(name))])));
}

/** The same numbers in a request to a model. */
export function samplingOf(request: Sampling, spell: (name: string) => string = withUnderscores): JsonObject {
  return Object.fromEntries(sampling.map((name) => [spell(name), request[name]]));
}

/** A tool, from the object that names it. */
export function toolFrom(given: JsonObject, parameters: unknown, at: string, losses: Losses): NeutralTool {
  return {
    name: stringIn(given, 'name') ?? losses.refuse(`${at}.name`),
    parameters: isObject(parameters) ? parameters : {},
    ...fields({ description: stringIn(given, 'description'), strict: given.strict === true || undefined }),
  };
}

/** A choice of OpenAI's wires. `name`: that of the tool that it names. */
export function choiceOf(choice: unknown, name: unknown, losses: Losses): NeutralRequest['toolChoice'] {
  if (choice === 'auto' || choice === 'none' || choice === 'required') return choice;
  if (typeof name === 'string') return { tool: name };
  return choice == null ? undefined : losses.refuse('tool_choice');
}

/** A format of OpenAI's wires. `inner`: what has its schema. */
export function formatOf(
  format: unknown,
  inner: unknown,
  at: string,
  losses: Losses,
): NeutralRequest['format'] {
  const type = member(format, 'type');
  if (type === undefined || type === 'text') return undefined;
  if (type === 'json_object') return {};
  const schema = member(inner, 'schema');
  if (type !== 'json_schema' || !isObject(inner) || !isObject(schema)) return losses.refuse(at);
  return { schema, ...fields({ name: stringIn(inner, 'name'), strict: inner.strict === true || undefined }) };
}

/** @param known members of the part that say nothing else */
export function textPart(part: JsonObject, at: string, known: ReadonlySet<string>, losses: Losses) {
  losses.rest(part, at, known, 'message option');
  return { type: 'text' as const, text: stringIn(part, 'text') ?? '' };
}

export function imageAt(url: string): Content {
  return { type: 'image', ...(inlineData(url) ?? { url }) };
}

/** A document in a `data:` URL; undefined for any other. */
export function documentIn(url: unknown, name: unknown): Content | undefined {
  const inline = typeof url === 'string' ? inlineData(url) : undefined;
  return inline && { type: 'document', ...inline, ...(typeof name === 'string' && { name }) };
}
