import type { WireTranslation } from '../../../translation/wire-translation.ts';
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
  path: () => '/chat/completions',
};
