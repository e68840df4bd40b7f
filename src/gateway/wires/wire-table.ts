import type { Wire } from '../../suite/model-config.ts';
import { anthropicMessages } from './anthropic-messages/wire.ts';
import { gemini } from './gemini/wire.ts';
import { openAiChat } from './openai-chat/wire.ts';
import { openAiResponses } from './openai-responses/wire.ts';
import type { WireDescriptor } from './wire-descriptor.ts';

export const wireTable: Readonly<Record<Wire, WireDescriptor>> = {
  'openai-chat': openAiChat,
  'openai-responses': openAiResponses,
  'anthropic-messages': anthropicMessages,
  gemini,
};

/** All wires in the order of the table: the first is the default for a client whose wire is unknown. */
export const allWires: readonly WireDescriptor[] = Object.values(wireTable);

const accepted = allWires.filter(({ requests }) => !requests.names).map(({ requests }) => requests.accepted);

/**
 * Members of all wires without names of their own: servers that speak several of them ignore those of the
 * others, or read them in the same way.
 */
export const knownMembers: ReadonlySet<string> = new Set(accepted.flatMap(({ members }) => [...members]));

/** Members of any wire that make a provider work outside the conversation. */
export const hostedMembers: ReadonlySet<string> = new Set(accepted.flatMap(({ hosted }) => [...hosted]));
