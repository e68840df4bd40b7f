import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { member, tokens } from '../../lenient.ts';
import { answerPath, countPath } from '../paths.ts';
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
  path: answerPath,
  count: {
    path: countPath,
    write: (request, model) => ({ generateContentRequest: { model: `models/${model}`, ...request } }),
    read: (body) => tokens.parse(member(body, 'totalTokens')),
  },
};
