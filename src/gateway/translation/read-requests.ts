import { inlineData, isObject, type JsonObject, member, numberIn, stringIn } from '../wires/lenient.ts';
import { fields } from '../wires/openai.ts';
import type { Losses } from './losses.ts';
import type { Content, NeutralRequest, NeutralTool } from './neutral-request.ts';

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
