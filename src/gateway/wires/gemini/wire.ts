import { readErrorBody } from '../model-error.ts';
import type { WireDescriptor } from '../wire-descriptor.ts';
import { readFacts, readStream } from './answers.ts';
import { models } from './models.ts';
import { readReply, write, writeAnswer, writeStream } from './own-requests.ts';
import { streamQuery, targetOf } from './paths.ts';
import { read } from './read.ts';
import { accepted, freeForm, partMembers, providerSide, spelled } from './requests.ts';
import { translation } from './translation/translation.ts';

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
  errorBody: (status, _code, message) => ({ error: { code: status, message, status: statusName(status) } }),
  models,
  requests: {
    accepted,
    hostedTool: () => undefined,
    providerSide,
    names: { freeForm, spelled: new Set([...spelled, ...partMembers, ...accepted.members]) },
    read,
    write,
  },
  answers: { readError: readErrorBody, readFacts, readStream, readReply, write: writeAnswer, writeStream },
  translation,
};

function statusName(status: number): string {
  const names: Record<number, string> = {
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    429: 'RESOURCE_EXHAUSTED',
    503: 'UNAVAILABLE',
    504: 'DEADLINE_EXCEEDED',
  };
  return names[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT');
}
