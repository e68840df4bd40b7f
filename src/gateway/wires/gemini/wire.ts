import { modelWith, type ServerModel } from '../../probe/server-models.ts';
import { anything, listOf, member, object, objectsOf, tokens, wholeText } from '../lenient.ts';
import type { WireDescriptor, WireModels } from '../wire-descriptor.ts';
import { answerPath, countPath, streamQuery, targetOf } from './paths.ts';
import { accepted, freeForm, partMembers, providerSide, read, spelled } from './requests.ts';
import { readAnswer } from './translation/read-answer.ts';
import { readRequest } from './translation/read-request.ts';
import { errorBody, writeAnswer, writeStream } from './translation/write-answer.ts';
import { writeRequest } from './translation/write-request.ts';

/** https://ai.google.dev/api/models */
const models: WireModels = {
  query: 'pageSize=1000',
  read({ models, data }) {
    // Other servers have members of both names.
    if (!Array.isArray(models) || Array.isArray(data)) return undefined;
    const entries = objectsOf(models).map((entry) => Entry.parse(entry));
    const isOwn = entries.every(({ name }) => name?.startsWith('models/'));
    return isOwn ? entries.flatMap(modelOf) : undefined;
  },
  list: (names) => ({ models: names.map(entry) }),
  entry,
};

const Entry = object({
  name: wholeText,
  inputTokenLimit: tokens,
  outputTokenLimit: tokens,
  supportedGenerationMethods: listOf(anything),
});

function modelOf(entry: ReturnType<typeof Entry.parse>): ServerModel[] {
  const { name, inputTokenLimit, outputTokenLimit, supportedGenerationMethods: methods } = entry;
  if (name === undefined || !methods.includes('generateContent')) return [];
  const id = name.replace(/^models\//, '');
  return [modelWith(id, { contextWindow: inputTokenLimit, maxOutputTokens: outputTokenLimit })];
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
    read,
  },
  translation: {
    readRequest,
    writeRequest,
    read: readAnswer,
    writeAnswer,
    writeStream,
    path: answerPath,
    count: {
      path: countPath,
      write: (request, model) => ({ generateContentRequest: { model: `models/${model}`, ...request } }),
      read: (body) => tokens.parse(member(body, 'totalTokens')),
    },
  },
};
