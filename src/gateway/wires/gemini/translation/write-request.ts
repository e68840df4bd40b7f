import type { Losses } from '../../../translation/losses.ts';
import {
  type Content,
  dropUnsupported,
  type ModelPart,
  type NeutralMessage,
  type NeutralRequest,
  splitSystem,
} from '../../../translation/neutral-request.ts';
import { samplingOf } from '../../../translation/read-requests.ts';
import type { WireTranslation } from '../../../translation/wire-translation.ts';
import type { JsonObject } from '../../lenient.ts';
import { argumentsOf, fields } from '../../openai.ts';

export const writeRequest: WireTranslation['writeRequest'] = (request, losses) => {
  const { system, messages } = splitSystem(request.messages, losses);
  if (request.parallelCalls === false) dropUnsupported(request, ['parallelCalls'], losses);
  if (request.tools.some(({ strict }) => strict)) losses.drop('tools[].strict', 'tool option');
  const declarations = request.tools.map(({ name, description, parameters }) =>
    fields({ name, description, parametersJsonSchema: parameters }),
  );
  const config = configOf(request);
  return fields({
    contents: contentsOf(messages, losses),
    systemInstruction: system.length === 0 ? undefined : { parts: system.map((text) => ({ text })) },
    tools: declarations.length === 0 ? undefined : [{ functionDeclarations: declarations }],
    toolConfig: declarations.length === 0 ? undefined : choiceOf(request.toolChoice),
    generationConfig: Object.keys(config).length === 0 ? undefined : config,
  });
};

function choiceOf(choice: NeutralRequest['toolChoice']): JsonObject | undefined {
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
function contentsOf(messages: readonly NeutralMessage[], losses: Losses): JsonObject[] {
  const names = new Map<string, string>();
  const merged: { role: string; parts: JsonObject[] }[] = [];
  for (const message of messages) {
    if (message.from === 'model')
      for (const part of message.parts) if (part.type === 'call') names.set(part.id, part.name);
    const role = message.from === 'model' ? 'model' : 'user';
    const parts = partsOf(message, names, losses);
    const last = merged.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else if (parts.length > 0) merged.push({ role, parts });
  }
  return merged;
}

function partsOf(message: NeutralMessage, names: Map<string, string>, losses: Losses): JsonObject[] {
  switch (message.from) {
    case 'system':
      return [{ text: message.text }];
    case 'user':
      return message.parts.map((part) => contentPart(part, losses));
    case 'model':
      return signedParts(
        message.parts.filter((part) => isCarried(part, losses)),
        modelPart,
      );
    case 'tool': {
      const { callId: id, parts, failed } = message;
      const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
      const media = parts.filter(({ type }) => type !== 'text').map((part) => contentPart(part, losses));
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

function modelPart(part: Exclude<ModelPart, { type: 'reasoning' }>): JsonObject {
  if (part.type !== 'call') return { text: part.text };
  return { functionCall: { id: part.id, name: part.name, args: argumentsOf(part.arguments) } };
}

function contentPart(part: Content, losses: Losses): JsonObject {
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
