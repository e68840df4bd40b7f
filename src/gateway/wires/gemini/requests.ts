import { isObject, type JsonObject, member, objectsOf } from '../lenient.ts';
import { type ModelRequest, type RequestMessage, textsOf, toolOf } from '../model-request.ts';
import { type Accepted, words } from '../wire-descriptor.ts';

export const accepted: Accepted = {
  members: words('contents systemInstruction tools toolConfig generationConfig safetySettings labels'),
  // Content that is stored at the provider.
  hosted: words('cachedContent'),
  parts: new Set(),
  toolMembers: words('functionDeclarations'),
};

/** Members of a part. All others run code at the provider, or name files that it stores or fetches. */
export const partMembers = words(
  'text thought thoughtSignature inlineData functionCall functionResponse partMetadata mediaResolution',
);

/** What a client or a schema defines, with any names. */
export const freeForm = words(
  'args response parameters parametersJsonSchema responseSchema responseJsonSchema partMetadata labels',
);

/** Names that this wire spells in one way; its servers also read them with underscores. */
export const spelled = words(`
  contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent model parts role
  fileData fileUri executableCode codeExecutionResult generateContentRequest`);

/** Names what a request asks its provider to do outside the conversation. */
export function providerSide(body: JsonObject): string | undefined {
  if (body.cachedContent != null) return 'cachedContent';
  for (const tool of listed(body.tools)) {
    const other = isObject(tool)
      ? Object.keys(tool).find((name) => !accepted.toolMembers.has(name))
      : 'unknown';
    if (other) return `the tool ${JSON.stringify(other.slice(0, 100))}`;
  }
  for (const content of [...listed(body.contents), ...listed(body.systemInstruction)]) {
    for (const part of listed(member(content, 'parts'))) {
      const inResult = listed(member(member(part, 'functionResponse'), 'parts'));
      const found = [part, ...inResult].map(inPart).find((one) => one !== undefined);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** Clients may send a single value in place of a list. */
function listed(value: unknown): unknown[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
}

function inPart(part: unknown): string | undefined {
  if (!isObject(part)) return typeof part === 'string' ? undefined : 'a part of an unknown shape';
  const other = Object.keys(part).find((name) => !partMembers.has(name));
  return other && `a part with ${JSON.stringify(other.slice(0, 100))}`;
}

/**
 * Calls and responses need no ids on this wire. A call without an id gets its number. A response without an
 * id belongs to the next call of its name.
 */
export function read(body: JsonObject): ModelRequest {
  const messages: RequestMessage[] = [];
  const waiting: { id: string; name: unknown }[] = [];
  let calls = 0;
  for (const { role, parts: given } of objectsOf([body.contents].flat())) {
    const parts = objectsOf([given].flat());
    const texts = textsOf(parts.filter(({ thought }) => thought !== true));
    if (role === 'model') {
      const called = parts.map(({ functionCall }) => functionCall).filter(isObject);
      const requested = called.map(({ id, name, args }) => {
        const call = { id: typeof id === 'string' && id !== '' ? id : `call_${calls}`, name };
        calls += 1;
        waiting.push(call);
        return { id: call.id, name: String(name), arguments: args };
      });
      messages.push({ from: 'model', texts, calls: requested });
      continue;
    }
    const results = parts.map(({ functionResponse }) => functionResponse).filter(isObject);
    for (const { id, name, response } of results) {
      const at = waiting.findIndex((call) => (id ? call.id === id : call.name === name));
      const [call] = at === -1 ? [] : waiting.splice(at, 1);
      messages.push({ from: 'tool', callId: call?.id ?? String(id), texts: [textOf(response)] });
    }
    if (results.length === 0) messages.push({ from: 'user', texts });
    else if (texts.length > 0) messages.push({ from: 'user', texts, besideResults: true });
  }
  const declared = objectsOf(body.tools).flatMap(({ functionDeclarations }) =>
    objectsOf(functionDeclarations),
  );
  return {
    system: textsOf(member(body.systemInstruction, 'parts')),
    messages,
    tools: declared.flatMap((tool) => toolOf(tool.name, tool.parametersJsonSchema ?? tool.parameters)),
  };
}

function textOf(response: unknown): string {
  const content = member(response, 'output') ?? member(response, 'error');
  return typeof content === 'string' ? content : JSON.stringify(response ?? {});
}
