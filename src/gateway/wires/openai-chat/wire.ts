import { openAiAccountHeaders, openAiError, openAiModels, openAiVariables } from '../openai.ts';
import type { WireDescriptor } from '../wire-descriptor.ts';
import { accepted, hostedTool, read, usageOption } from './requests.ts';
import { readAnswer } from './translation/read-answer.ts';
import { readRequest } from './translation/read-request.ts';
import { writeAnswer, writeStream } from './translation/write-answer.ts';
import { writeRequest } from './translation/write-request.ts';

/** Chat Completions, as defined by OpenAI and spoken by many servers. */
export const openAiChat: WireDescriptor = {
  name: 'openai-chat',
  title: 'OpenAI chat completions',
  version: 'v1',
  endpoints: [{ path: '/chat/completions' }],
  auth: 'bearer',
  ownHeaders: [],
  passedHeaders: { 'openai-beta': /^[\w-]+=[\w-]+(\s*,\s*[\w-]+=[\w-]+){0,20}$/ },
  accountHeaders: openAiAccountHeaders,
  headers: {},
  variables: openAiVariables,
  errorBody: openAiError,
  models: openAiModels,
  requests: { accepted, hostedTool, usageOption, read },
  translation: {
    readRequest,
    writeRequest,
    read: readAnswer,
    writeAnswer,
    writeStream,
    path: () => '/chat/completions',
  },
};
