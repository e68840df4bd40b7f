import type { Losses } from '../../../translation/losses.ts';
import { efforts, type NeutralRequest, type NeutralTool } from '../../../translation/neutral-request.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { words } from '../../accepted.ts';
import { isObject, type JsonObject, list, member, objectsOf } from '../../lenient.ts';
import { numberIn, stringIn, stringsIn } from '../../read-values.ts';
import { fields } from '../../reply.ts';
import { readMessages } from './read-messages.ts';

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
    tools: objectsOf(body.tools).flatMap((tool) => toolsOf(tool, losses)),
    stop: stringsIn(config, 'stopSequences'),
    ...(fields({
      toolChoice: choiceOf(body.toolConfig, losses),
      maxTokens: numberIn(config, 'maxOutputTokens'),
      temperature: numberIn(config, 'temperature'),
      topP: numberIn(config, 'topP'),
      topK: numberIn(config, 'topK'),
      seed: numberIn(config, 'seed'),
      presencePenalty: numberIn(config, 'presencePenalty'),
      frequencyPenalty: numberIn(config, 'frequencyPenalty'),
      reasoning: reasoningOf(config.thinkingConfig),
      format: formatOf(config, losses),
    }) as Partial<NeutralRequest>),
  };
};

const declarationMembers = words('name description parameters parametersJsonSchema');

function toolsOf(tool: JsonObject, losses: Losses): NeutralTool[] {
  const other = Object.keys(tool).find((name) => name !== 'functionDeclarations');
  if (other !== undefined) losses.refuse(`tools[].${other.slice(0, 60)}`);
  return objectsOf(tool.functionDeclarations).map((declaration) => {
    losses.rest(declaration, 'tools[].functionDeclarations[]', declarationMembers, 'tool option');
    const { parametersJsonSchema: schema, parameters } = declaration;
    const description = stringIn(declaration, 'description');
    return {
      name: stringIn(declaration, 'name') ?? losses.refuse('tools[].functionDeclarations[].name'),
      ...(description !== undefined && { description }),
      parameters: isObject(schema) ? schema : isObject(parameters) ? jsonSchemaOf(parameters) : {},
    };
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
