import { type Accepted, words } from '../accepted.ts';
import { isObject, type JsonObject, member } from '../lenient.ts';

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
