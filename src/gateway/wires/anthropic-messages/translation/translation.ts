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
  path: () => '/messages',
  count: {
    path: () => '/messages/count_tokens',
    // The endpoint refuses members that shape the answer.
    write: ({ model, messages, system, tools, tool_choice }) =>
      fields({ model, messages, system, tools, tool_choice }),
    read: (body) => tokens.parse(member(body, 'input_tokens')),
  },
};
