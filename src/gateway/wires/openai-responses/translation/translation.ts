import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { member, tokens } from '../../lenient.ts';
import { fields } from '../../reply.ts';
import { read } from './read-answer.ts';
import { readRequest } from './read-request.ts';
import { writeAnswer } from './write-answer.ts';
import { writeRequest } from './write-request.ts';
import { writeStream } from './write-stream.ts';

export const translation: WireTranslation = {
  readRequest,
  writeRequest,
  read,
  writeAnswer,
  writeStream,
  path: () => '/responses',
  count: {
    path: () => '/responses/input_tokens',
    write: ({ model, input, instructions, tools, tool_choice, text, reasoning }) =>
      fields({ model, input, instructions, tools, tool_choice, text, reasoning }),
    read: (body) => tokens.parse(member(body, 'input_tokens')),
  },
};
