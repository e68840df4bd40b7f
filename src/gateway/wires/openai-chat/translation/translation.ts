import type { WireTranslation } from '../../../translation/wire-translation.ts';
import { readAnswer } from './read-answer.ts';
import { readRequest } from './read-request.ts';
import { readStream } from './read-stream.ts';
import { writeAnswer } from './write-answer.ts';
import { writeRequest } from './write-request.ts';
import { writeStream } from './write-stream.ts';

export const translation: WireTranslation = {
  readRequest,
  writeRequest,
  readAnswer,
  writeAnswer,
  readStream,
  writeStream,
  path: () => '/chat/completions',
};
