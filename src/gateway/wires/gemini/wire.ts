import { modelWith, type ServerModel } from '../../probe/server-models.ts';
import { isObject, type JsonObject, list, member, objectsOf, stringIn, tokensIn, words } from '../lenient.ts';
import type { Accepted, PathTarget, WireDescriptor, WireModels } from '../wire-descriptor.ts';
import { errorBody, readAnswer, writeAnswer, writeStream } from './answers.ts';
import { readMessages, readRequest, readTools, writeRequest } from './requests.ts';

const accepted: Accepted = {
  members: words('contents systemInstruction tools toolConfig generationConfig safetySettings labels'),
  // Content that is stored at the provider.
  hosted: words('cachedContent'),
  parts: new Set(),
  toolMembers: words('functionDeclarations'),
};

/** Members of a part. All others run code at the provider, or name files that it stores or fetches. */
const partMembers = words(
  'text thought thoughtSignature inlineData functionCall functionResponse partMetadata mediaResolution',
);

/** What a client or a schema defines, with any names. */
const freeForm = words(
  'args response parameters parametersJsonSchema responseSchema responseJsonSchema partMetadata labels',
);

/** Names that this wire spells in one way; its servers also read them with underscores. */
const spelled = words(`
  contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent model parts role
  fileData fileUri executableCode codeExecutionResult generateContentRequest`);

/** Names what a request asks its provider to do outside the conversation. */
function providerSide(body: JsonObject): string | undefined {
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

/** Reads `/models/NAME:generateContent`, as a path below the base URL. */
function targetOf(path: string): PathTarget | undefined {
  const [, model, verb] = /^\/models\/([^?#]+):(\w+)$/.exec(path) ?? [];
  if (model === undefined) return undefined;
  if (verb === 'generateContent') return { model, purpose: 'answer', streamed: false };
  if (verb === 'streamGenerateContent') return { model, purpose: 'answer', streamed: true };
  return verb === 'countTokens' ? { model, purpose: 'count', streamed: false } : undefined;
}

/** The stream as server-sent events; without `alt` it would be a JSON list. */
const streamQuery = 'alt=sse';

function answerPath(model: string, streamed: boolean): string {
  return streamed
    ? `/models/${inPath(model)}:streamGenerateContent?${streamQuery}`
    : `/models/${inPath(model)}:generateContent`;
}

function countPath(model: string): string {
  return `/models/${inPath(model)}:countTokens`;
}

/** Names of models may have slashes, which are parts of the path. */
function inPath(model: string): string {
  return model.split('/').map(encodeURIComponent).join('/');
}

/** https://ai.google.dev/api/models */
const models: WireModels = {
  query: 'pageSize=1000',
  read({ models, data }) {
    // Other servers have members of both names.
    if (!Array.isArray(models) || Array.isArray(data)) return undefined;
    const entries = objectsOf(models);
    const isOwn = entries.every((entry) => stringIn(entry, 'name')?.startsWith('models/'));
    return isOwn ? entries.flatMap(modelOf) : undefined;
  },
  list: (names) => ({ models: names.map(entry) }),
  entry,
};

function modelOf(entry: JsonObject): ServerModel[] {
  const id = stringIn(entry, 'name')?.replace(/^models\//, '');
  if (id === undefined || !list(entry.supportedGenerationMethods).includes('generateContent')) return [];
  const contextWindow = tokensIn(entry, 'inputTokenLimit');
  return [modelWith(id, { contextWindow, maxOutputTokens: tokensIn(entry, 'outputTokenLimit') })];
}

function entry(name: string): object {
  const supportedGenerationMethods = ['generateContent', 'streamGenerateContent', 'countTokens'];
  return { name: `models/${name}`, displayName: name, supportedGenerationMethods };
}

/** Google's Gemini API: generateContent, streamGenerateContent and countTokens. */
export const gemini: WireDescriptor = {
  name: 'gemini',
  title: 'Gemini',
  version: 'v1beta',
  endpoints: [
    { path: '/models/{model}:generateContent' },
    { path: '/models/{model}:streamGenerateContent' },
    { path: '/models/{model}:countTokens', writeCount: (totalTokens) => ({ totalTokens }) },
  ],
  targetOf,
  streamQuery,
  auth: 'x-goog-api-key',
  ownHeaders: ['x-goog-api-key', 'x-goog-api-client'],
  passedHeaders: {},
  accountHeaders: [],
  headers: {},
  variables: (origin, key) => ({ GOOGLE_GEMINI_BASE_URL: origin, GEMINI_API_KEY: key }),
  errorBody: (status, _code, message) => errorBody(status, message),
  models,
  requests: {
    accepted,
    hostedTool: () => undefined,
    providerSide,
    names: { freeForm, spelled: new Set([...spelled, ...partMembers, ...accepted.members]) },
  },
  translation: {
    readRequest,
    readMessages,
    readTools,
    writeRequest,
    read: readAnswer,
    writeAnswer,
    writeStream,
    path: answerPath,
    count: {
      path: countPath,
      write: (request, model) => ({ generateContentRequest: { model: `models/${model}`, ...request } }),
      read: (body) => tokensIn(body, 'totalTokens'),
    },
  },
};
