import type { Wire } from '../../suite/model-config.ts';
import { anthropicMessages } from './anthropic-messages/wire.ts';
import { openAiChat } from './openai-chat/wire.ts';
import { openAiResponses } from './openai-responses/wire.ts';
import type { WireDescriptor } from './wire-descriptor.ts';

export const wireTable: Readonly<Record<Wire, WireDescriptor>> = {
  'openai-chat': openAiChat,
  'openai-responses': openAiResponses,
  'anthropic-messages': anthropicMessages,
};

export const allWires: readonly WireDescriptor[] = Object.values(wireTable);
