import type { Wire } from '../../suite/model-config.ts';
import { anthropicMessages } from './anthropic-messages.ts';
import type { Dialect } from './dialect.ts';
import { openAiChat } from './openai-chat.ts';
import { openAiResponses } from './openai-responses.ts';

export const dialects: Readonly<Record<Wire, Dialect>> = {
  'openai-chat': openAiChat,
  'openai-responses': openAiResponses,
  'anthropic-messages': anthropicMessages,
};
