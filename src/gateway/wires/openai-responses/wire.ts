import { member, tokens } from '../lenient.ts';
import { openAiAccountHeaders, openAiError, openAiModels, openAiVariables } from '../openai.ts';
import { fields } from '../reply.ts';
import type { WireDescriptor } from '../wire-descriptor.ts';
import { accepted, hostedTool, read } from './requests.ts';
import { readAnswer } from './translation/read-answer.ts';
import { readRequest } from './translation/read-request.ts';
import { writeAnswer, writeStream } from './translation/write-answer.ts';
import { writeRequest } from './translation/write-request.ts';

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
  translation: {
    readRequest,
    writeRequest,
    read: readAnswer,
    writeAnswer,
    writeStream,
    path: () => '/responses',
    count: {
      path: () => '/responses/input_tokens',
      write: ({ model, input, instructions, tools, tool_choice, text, reasoning }) =>
        fields({ model, input, instructions, tools, tool_choice, text, reasoning }),
      read: (body) => tokens.parse(member(body, 'input_tokens')),
    },
  },
};
