import type { Losses } from '../../translation/losses.ts';
import {
  type Content,
  dropUnsupported,
  efforts,
  type ModelPart,
  type NeutralMessage,
  type NeutralRequest,
  type NeutralTool,
  samplingIn,
  samplingOf,
  splitSystem,
  toolFrom,
} from '../../translation/neutral-request.ts';
import {
  fields,
  isObject,
  type JsonObject,
  list,
  member,
  numberIn,
  objectsOf,
  stringIn,
  stringsIn,
  words,
} from '../lenient.ts';
import { argumentsOf } from '../openai.ts';
import type { WireTranslation } from '../wire-descriptor.ts';

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
      toolChoice: readChoice(body.toolConfig, losses),
      maxTokens: numberIn(config, 'maxOutputTokens'),
      reasoning: readReasoning(config.thinkingConfig),
      format: readFormat(config, losses),
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

function readChoice(toolConfig: unknown, losses: Losses): NeutralRequest['toolChoice'] {
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
function readReasoning(config: unknown): NeutralRequest['reasoning'] {
  if (!isObject(config)) return undefined;
  const budget = numberIn(config, 'thinkingBudget');
  const level = stringIn(config, 'thinkingLevel')?.toLowerCase();
  const effort = budget === 0 ? 'none' : efforts.find((one) => one === level);
  if (effort) return { effort };
  return budget !== undefined && budget > 0 ? { budget } : undefined;
}

function readFormat(config: JsonObject, losses: Losses): NeutralRequest['format'] {
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
    const media = losses.each(objectsOf(given.parts), (part) => readContent(part, losses));
    return {
      from: 'tool',
      callId: id || call?.id || losses.refuse('contents[].parts[].functionResponse'),
      ...responseContent(given.response, media),
    };
  };
  return [
    ...systemOf(body.systemInstruction),
    ...losses.each(contentsIn(body.contents), ({ role, parts: given }): NeutralMessage[] => {
      const parts = partsIn(given);
      if (role === 'model') return [{ from: 'model', parts: readModelParts(parts, callOf, losses) }];
      const results = losses.each(withoutRepeated(parts), (part) =>
        isObject(part.functionResponse) ? [resultOf(part.functionResponse)] : [],
      );
      const own = parts.filter((part) => !isObject(part.functionResponse));
      const said = losses.each(own, (part) => readContent(part, losses));
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
    typeof instruction === 'string' ? [{ text: instruction }] : partsIn(member(instruction, 'parts'));
  return given.flatMap((part) => {
    const text = stringIn(part, 'text');
    return text === undefined ? [] : [{ from: 'system' as const, text }];
  });
}

/** Clients may send a single value in place of a list. */
function contentsIn(contents: unknown): JsonObject[] {
  if (typeof contents === 'string') return [{ role: 'user', parts: [{ text: contents }] }];
  return objectsOf(Array.isArray(contents) ? contents : [contents]);
}

function partsIn(parts: unknown): JsonObject[] {
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

function readModelParts(
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

function readContent(part: JsonObject, losses: Losses): Content {
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

export const writeRequest: WireTranslation['writeRequest'] = (request, losses) => {
  const { system, messages } = splitSystem(request.messages, losses);
  if (request.parallelCalls === false) dropUnsupported(request, ['parallelCalls'], losses);
  if (request.tools.some(({ strict }) => strict)) losses.drop('tools[].strict', 'tool option');
  const declarations = request.tools.map(({ name, description, parameters }) =>
    fields({ name, description, parametersJsonSchema: parameters }),
  );
  const config = configOf(request);
  return fields({
    contents: writeContents(messages, losses),
    systemInstruction: system.length === 0 ? undefined : { parts: system.map((text) => ({ text })) },
    tools: declarations.length === 0 ? undefined : [{ functionDeclarations: declarations }],
    toolConfig: declarations.length === 0 ? undefined : writeChoice(request.toolChoice),
    generationConfig: Object.keys(config).length === 0 ? undefined : config,
  });
};

function writeChoice(choice: NeutralRequest['toolChoice']): JsonObject | undefined {
  if (choice === undefined) return undefined;
  const modes = { auto: 'AUTO', none: 'NONE', required: 'ANY' };
  return {
    functionCallingConfig:
      typeof choice === 'string'
        ? { mode: modes[choice] }
        : { mode: 'ANY', allowedFunctionNames: [choice.tool] },
  };
}

function configOf({ reasoning, format, stop, ...request }: NeutralRequest): JsonObject {
  const { effort, budget } = reasoning ?? {};
  const level = effort === 'xhigh' || effort === 'max' ? 'high' : effort;
  const thinking = fields({
    thinkingBudget: effort === 'none' ? 0 : budget,
    thinkingLevel: effort === 'none' || budget !== undefined ? undefined : level?.toUpperCase(),
    includeThoughts: reasoning && effort !== 'none' ? true : undefined,
  });
  return fields({
    ...samplingOf(request, (name) => name),
    maxOutputTokens: request.maxTokens,
    stopSequences: stop.length === 0 ? undefined : stop,
    thinkingConfig: reasoning && thinking,
    responseMimeType: format && 'application/json',
    responseJsonSchema: format?.schema,
  });
}

/** Results belong to the user, and have the names of their calls. */
function writeContents(messages: readonly NeutralMessage[], losses: Losses): JsonObject[] {
  const names = new Map<string, string>();
  const merged: { role: string; parts: JsonObject[] }[] = [];
  for (const message of messages) {
    if (message.from === 'model')
      for (const part of message.parts) if (part.type === 'call') names.set(part.id, part.name);
    const role = message.from === 'model' ? 'model' : 'user';
    const parts = writeParts(message, names, losses);
    const last = merged.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else if (parts.length > 0) merged.push({ role, parts });
  }
  return merged;
}

function writeParts(message: NeutralMessage, names: Map<string, string>, losses: Losses): JsonObject[] {
  switch (message.from) {
    case 'system':
      return [{ text: message.text }];
    case 'user':
      return message.parts.map((part) => writeContent(part, losses));
    case 'model':
      return signedParts(
        message.parts.filter((part) => isCarried(part, losses)),
        writeModelPart,
      );
    case 'tool': {
      const { callId: id, parts, failed } = message;
      const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
      const media = parts.filter(({ type }) => type !== 'text').map((part) => writeContent(part, losses));
      return [
        {
          functionResponse: {
            id,
            name: names.get(id) ?? losses.refuse('messages[].callId'),
            response: { [failed ? 'error' : 'output']: text },
            ...(media.length > 0 && { parts: media }),
          },
        },
      ];
    }
  }
}

/** Another provider's thoughts without text mean nothing here. */
function isCarried(part: ModelPart, losses: Losses): boolean {
  if (part.type !== 'reasoning' || !part.redacted) return true;
  losses.drop('messages[].parts[].reasoning', 'reasoning');
  return false;
}

function writeModelPart(part: Exclude<ModelPart, { type: 'reasoning' }>): JsonObject {
  if (part.type !== 'call') return { text: part.text };
  return { functionCall: { id: part.id, name: part.name, args: argumentsOf(part.arguments) } };
}

function writeContent(part: Content, losses: Losses): JsonObject {
  if (part.type === 'text') return { text: part.text };
  if ('url' in part) return losses.refuse('messages[].parts[].url');
  const name = part.type === 'document' ? part.name : undefined;
  return { inlineData: fields({ mimeType: part.mediaType, data: part.data, displayName: name }) };
}

/** The parts of this wire. A signature goes to the next part that is no thought. */
export function signedParts(
  parts: readonly ModelPart[],
  write: (part: Exclude<ModelPart, { type: 'reasoning' }>) => JsonObject,
): JsonObject[] {
  const written: JsonObject[] = [];
  let signature: string | undefined;
  for (const [index, part] of parts.entries()) {
    if (part.type !== 'reasoning') {
      written.push({ ...write(part), ...(signature !== undefined && { thoughtSignature: signature }) });
      signature = undefined;
      continue;
    }
    const next = parts[index + 1];
    const follows = next !== undefined && next.type !== 'reasoning';
    if (part.text !== '')
      written.push({
        text: part.text,
        thought: true,
        ...(!follows && part.signature && { thoughtSignature: part.signature }),
      });
    else if (!follows && part.signature) written.push({ text: '', thoughtSignature: part.signature });
    signature = follows ? part.signature : undefined;
  }
  return written;
}
