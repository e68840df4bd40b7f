import { openAiAccountHeaders, openAiError, openAiModels, openAiVariables } from '../openai.ts';
import type { WireDescriptor } from '../wire-descriptor.ts';
import { accepted, hostedTool, read } from './requests.ts';
import { translation } from './translation/translation.ts';

/** OpenAI's Responses. */
export const openAiResponses: WireDescriptor = {
  name: 'openai-responses',
  title: 'OpenAI responses',
  version: 'v1',
  endpoints: [
    { path: '/responses' },
    {
      path: '/responses/input_tokens',
      writeCount: (input_tokens) => ({ object: 'response.input_tokens', input_tokens }),
    },
  ],
  auth: 'bearer',
  ownHeaders: [],
  passedHeaders: {},
  accountHeaders: openAiAccountHeaders,
  headers: {},
  variables: openAiVariables,
  errorBody: openAiError,
  models: openAiModels,
  requests: { accepted, hostedTool, read },
  translation,
};
