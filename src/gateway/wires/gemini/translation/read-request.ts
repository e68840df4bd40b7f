import type { Losses } from '../../../translation/losses.ts';
import {
  type Content,
  efforts,
  type ModelPart,
  type NeutralMessage,
  type NeutralRequest,
  type NeutralTool,
} from '../../../translation/neutral-request.ts';
import { samplingIn, toolFrom } from '../../../translation/read-requests.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import {
  isObject,
  type JsonObject,
  list,
  member,
  numberIn,
  objectsOf,
  stringIn,
  stringsIn,
  words,
} from '../../lenient.ts';
import { fields } from '../../openai.ts';

const known = words('contents systemInstruction tools toolConfig generationConfig cachedContent');
const configMembers = words(`
  temperature topP topK maxOutputTokens stopSequences seed presencePenalty frequencyPenalty candidateCount
  responseMimeType responseSchema responseJsonSchema thinkingConfig responseModalities`);

export const readRequest: WireTranslation['readRequest'] = (body, losses) => {
  if (body.cachedContent != null) losses.refuse('cachedContent');
  losses.rest(body, '', known, 'service option');
  const config = isObject(body.generationConfig) ? body.generationConfig : {};
  losses.rest(config, 'generationConfig', configMembers, 'service option');
  if (config.candidateCount != null && config.candidateCount !== 1)
    losses.refuse('generationConfig.candidateCount');
  if (list(config.responseModalities).some((one) => one !== 'TEXT'))
    losses.refuse('generationConfig.responseModalities');
  return {
    usageAsked: true,
    messages: readMessages(body, losses),
    tools: readTools(body, losses),
    stop: stringsIn(config, 'stopSequences'),
    ...samplingIn(config, undefined, (name) => name),
    ...fields({
      toolChoice: choiceOf(body.toolConfig, losses),
      maxTokens: numberIn(config, 'maxOutputTokens'),
      reasoning: reasoningOf(config.thinkingConfig),
      format: formatOf(config, losses),
    }),
  };
};

const declarationMembers = words('name description parameters parametersJsonSchema');

export function readTools(body: JsonObject, losses: Losses): NeutralTool[] {
  const at = 'tools[].functionDeclarations[]';
  return losses.each(objectsOf(body.tools), (tool) => {
    const other = Object.keys(tool).find((name) => name !== 'functionDeclarations');
    if (other !== undefined) losses.refuse(`tools[].${other.slice(0, 60)}`);
    return losses.each(objectsOf(tool.functionDeclarations), (declaration) => {
      losses.rest(declaration, at, declarationMembers, 'tool option');
      const { parametersJsonSchema: schema, parameters } = declaration;
      const own = isObject(parameters) ? jsonSchemaOf(parameters) : undefined;
      return toolFrom(declaration, isObject(schema) ? schema : own, at, losses);
    });
  });
}

function choiceOf(toolConfig: unknown, losses: Losses): NeutralRequest['toolChoice'] {
  const config = member(toolConfig, 'functionCallingConfig');
  const names = isObject(config) ? stringsIn(config, 'allowedFunctionNames') : [];
  const mode = member(config, 'mode');
  const [name] = names;
  if (names.length === 1 && name !== undefined && mode === 'ANY') return { tool: name };
  if (names.length > 0) losses.drop('toolConfig.functionCallingConfig.allowedFunctionNames', 'tool option');
  switch (mode) {
    case 'AUTO':
    case 'VALIDATED':
      return 'auto';
    case 'ANY':
      return 'required';
    case 'NONE':
      return 'none';
    default:
      return undefined;
  }
}

/** A budget of 0 turns thinking off, and a negative one leaves it to the model. */
function reasoningOf(config: unknown): NeutralRequest['reasoning'] {
  if (!isObject(config)) return undefined;
  const budget = numberIn(config, 'thinkingBudget');
  const level = stringIn(config, 'thinkingLevel')?.toLowerCase();
  const effort = budget === 0 ? 'none' : efforts.find((one) => one === level);
  if (effort) return { effort };
  return budget !== undefined && budget > 0 ? { budget } : undefined;
}

function formatOf(config: JsonObject, losses: Losses): NeutralRequest['format'] {
  const { responseMimeType: type, responseSchema, responseJsonSchema } = config;
  if (type == null || type === 'text/plain') return undefined;
  if (type !== 'application/json') return losses.refuse('generationConfig.responseMimeType');
  if (isObject(responseJsonSchema)) return { schema: responseJsonSchema };
  return isObject(responseSchema) ? { schema: jsonSchemaOf(responseSchema) } : {};
}

/** Members of this wire's own schemas whose values are schemas by name. */
const byName: ReadonlySet<string> = new Set(['properties', 'defs', '$defs']);

/**
 * The wire's own kind of schema as JSON Schema: types are in lower case, and `nullable` becomes the type
 * null.
 */
function jsonSchemaOf(schema: JsonObject): JsonObject {
  const { type, nullable, ...rest } = schema;
  const small = typeof type === 'string' ? type.toLowerCase() : type;
  const members = Object.entries(rest).map(([name, value]) => [
    name,
    byName.has(name) && isObject(value) ? mapped(value) : inner(value, name),
  ]);
  return {
    ...(small !== undefined && { type: nullable === true ? [small, 'null'] : small }),
    ...Object.fromEntries(members),
  };
}

function mapped(schemas: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, inner(schema, 'items')]));
}

/** Schemas are in `items` and `anyOf`; all else is data. */
function inner(value: unknown, name: string): unknown {
  if (name !== 'items' && name !== 'anyOf') return value;
  if (Array.isArray(value)) return value.map((one) => (isObject(one) ? jsonSchemaOf(one) : one));
  return isObject(value) ? jsonSchemaOf(value) : value;
}

/**
 * Calls and responses need no ids on this wire. A call without an id gets its number in the conversation. A
 * response without an id belongs to the first call of its name that has no response yet.
 */
export function readMessages(body: JsonObject, losses: Losses): NeutralMessage[] {
  const waiting: { id: string; name: string }[] = [];
  let calls = 0;
  const callOf = (call: JsonObject): ModelPart => {
    const name = stringIn(call, 'name') ?? losses.refuse('contents[].parts[].functionCall.name');
    const id = stringIn(call, 'id') || `call_${calls}`;
    calls += 1;
    waiting.push({ id, name });
    return { type: 'call', id, name, arguments: JSON.stringify(call.args ?? {}) };
  };
  const resultOf = (given: JsonObject): NeutralMessage => {
    const id = stringIn(given, 'id');
    const at = waiting.findIndex((call) => (id ? call.id === id : call.name === given.name));
    const [call] = at === -1 ? [] : waiting.splice(at, 1);
    const media = losses.each(objectsOf(given.parts), (part) => contentOf(part, losses));
    return {
      from: 'tool',
      callId: id || call?.id || losses.refuse('contents[].parts[].functionResponse'),
      ...responseContent(given.response, media),
    };
  };
  return [
    ...systemOf(body.systemInstruction),
    ...losses.each(contentsOf(body.contents), ({ role, parts: given }): NeutralMessage[] => {
      const parts = partsOf(given);
      if (role === 'model') return [{ from: 'model', parts: modelParts(parts, callOf, losses) }];
      const results = losses.each(withoutRepeated(parts), (part) =>
        isObject(part.functionResponse) ? [resultOf(part.functionResponse)] : [],
      );
      const own = parts.filter((part) => !isObject(part.functionResponse));
      const said = losses.each(own, (part) => contentOf(part, losses));
      return said.length === 0 ? results : [...results, { from: 'user', parts: said }];
    }),
  ];
}

/** Gemini CLI repeats the results of a conversation that it resumes; other APIs refuse two for one call. */
function withoutRepeated(parts: readonly JsonObject[]): JsonObject[] {
  const seen = new Set<string>();
  return parts.filter(({ functionResponse }) => {
    if (!stringIn(isObject(functionResponse) ? functionResponse : {}, 'id')) return true;
    const text = JSON.stringify(functionResponse);
    return !seen.has(text) && seen.add(text);
  });
}

function systemOf(instruction: unknown): NeutralMessage[] {
  const given =
    typeof instruction === 'string' ? [{ text: instruction }] : partsOf(member(instruction, 'parts'));
  return given.flatMap((part) => {
    const text = stringIn(part, 'text');
    return text === undefined ? [] : [{ from: 'system' as const, text }];
  });
}

/** Clients may send a single value in place of a list. */
function contentsOf(contents: unknown): JsonObject[] {
  if (typeof contents === 'string') return [{ role: 'user', parts: [{ text: contents }] }];
  return objectsOf(Array.isArray(contents) ? contents : [contents]);
}

function partsOf(parts: unknown): JsonObject[] {
  return objectsOf(Array.isArray(parts) ? parts : [parts]);
}

/**
 * What clients send in place of a missing signature, so that Gemini accepts the call. These are not
 * signatures.
 */
const standIns: ReadonlySet<string> = new Set([
  'skip_thought_signature_validator',
  'context_engineering_is_the_way_to_go',
]);

function modelParts(
  parts: readonly JsonObject[],
  callOf: (call: JsonObject) => ModelPart,
  losses: Losses,
): ModelPart[] {
  const read: ModelPart[] = [];
  losses.each(parts, (part) => {
    const { functionCall } = part;
    const text = stringIn(part, 'text');
    if (!isObject(functionCall) && text === undefined && part.thoughtSignature === undefined)
      losses.refuse('contents[].parts[]');
    const content: ModelPart = isObject(functionCall)
      ? callOf(functionCall)
      : { type: part.thought === true ? 'reasoning' : 'text', text: text ?? '' };
    const signature = stringIn(part, 'thoughtSignature');
    addSigned(read, content, signature && standIns.has(signature) ? undefined : signature);
  });
  return read;
}

const partMembers = words('text inlineData');

function contentOf(part: JsonObject, losses: Losses): Content {
  losses.rest(part, 'contents[].parts[]', partMembers, 'message option');
  const text = stringIn(part, 'text');
  if (text !== undefined) return { type: 'text', text };
  const { inlineData } = part;
  const data = isObject(inlineData) ? stringIn(inlineData, 'data') : undefined;
  const mediaType = isObject(inlineData) ? stringIn(inlineData, 'mimeType') : undefined;
  if (data === undefined || mediaType === undefined) return losses.refuse('contents[].parts[]');
  if (mediaType.startsWith('image/')) return { type: 'image', mediaType, data };
  if (/^(audio|video)\//.test(mediaType)) return losses.refuse('contents[].parts[].inlineData');
  const name = stringIn(inlineData as JsonObject, 'displayName');
  return { type: 'document', mediaType, data, ...(name !== undefined && { name }) };
}

/** The text of a function's response. Clients put it into `output` or `error`. */
function responseContent(response: unknown, media: Content[]): { parts: Content[]; failed: boolean } {
  const names = isObject(response) ? Object.keys(response) : [];
  const [name] = names;
  const only =
    names.length === 1 && (name === 'output' || name === 'error') ? member(response, name) : undefined;
  const text = typeof only === 'string' ? only : JSON.stringify(response ?? {});
  return {
    parts: [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...media],
    failed: only !== undefined && name === 'error',
  };
}

/**
 * On this wire a signature is on the part that follows the thought. In the neutral form it belongs to a part
 * of reasoning, which has no text if the model did not show its thought.
 */
function addSigned(read: ModelPart[], content: ModelPart, signature: string | undefined): void {
  if (content.type === 'reasoning') return void read.push(signature ? { ...content, signature } : content);
  const last = read.at(-1);
  if (signature && last?.type === 'reasoning' && last.signature === undefined) last.signature = signature;
  else if (signature) read.push({ type: 'reasoning', text: '', signature });
  if (content.type !== 'text' || content.text !== '') read.push(content);
}
