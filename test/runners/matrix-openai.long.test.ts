import { matrix } from './matrix.ts';

matrix(['openai-chat', 'openai-responses']);
