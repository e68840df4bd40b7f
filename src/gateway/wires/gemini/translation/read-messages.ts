import type { Losses } from '../../../translation/losses.ts';
import type { Content, ModelPart, NeutralMessage } from '../../../translation/neutral-request.ts';
import { words } from '../../accepted.ts';
import { isObject, type JsonObject, member, objectsOf } from '../../lenient.ts';
import { stringIn } from '../../read-values.ts';
import { withSignature } from './signatures.ts';

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
    const media = objectsOf(given.parts).map((part) => contentOf(part, losses));
    return {
      from: 'tool',
      callId: id || call?.id || losses.refuse('contents[].parts[].functionResponse'),
      ...responseContent(given.response, media),
    };
  };
  return [
    ...systemOf(body.systemInstruction),
    ...contentsOf(body.contents).flatMap(({ role, parts: given }): NeutralMessage[] => {
      const parts = partsOf(given);
      if (role === 'model') return [{ from: 'model', parts: modelParts(parts, callOf, losses) }];
      const results = withoutRepeated(parts).flatMap((part) =>
        isObject(part.functionResponse) ? [resultOf(part.functionResponse)] : [],
      );
      const said = parts
        .filter((part) => !isObject(part.functionResponse))
        .map((part) => contentOf(part, losses));
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
  return parts.reduce<ModelPart[]>((read, part) => {
    const { functionCall } = part;
    const text = stringIn(part, 'text');
    if (!isObject(functionCall) && text === undefined && part.thoughtSignature === undefined)
      return losses.refuse('contents[].parts[]');
    const content: ModelPart = isObject(functionCall)
      ? callOf(functionCall)
      : { type: part.thought === true ? 'reasoning' : 'text', text: text ?? '' };
    const signature = stringIn(part, 'thoughtSignature');
    return withSignature(read, content, signature && standIns.has(signature) ? undefined : signature);
  }, []);
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
