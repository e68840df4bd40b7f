import { readErrorBody } from '../model-error.ts';
import type { WireDescriptor } from '../wire-descriptor.ts';
import { models } from './models.ts';
import { write, writeAnswer, writeStream } from './own-requests.ts';
import { streamQuery, targetOf } from './paths.ts';
import { read } from './read.ts';
import { accepted, freeForm, partMembers, providerSide, spelled } from './requests.ts';
import { translation } from './translation/translation.ts';
import { errorBody } from './translation/write-answer.ts';

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
    write,
  },
  answers: { readError: readErrorBody, write: writeAnswer, writeStream },
  translation,
};
