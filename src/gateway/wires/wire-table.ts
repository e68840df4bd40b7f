import { type Wire, wires } from '../../suite/model-config.ts';
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

export const allWires: readonly WireDescriptor[] = wires.map((name) => wireTable[name]);

/** The first wire: that of a client or a server whose wire is unknown. */
export const usualWire: WireDescriptor = wireTable[wires[0]];

/** The versions of all wires, that of the usual wire first. */
export const versions: readonly string[] = [...new Set(allWires.map(({ version }) => version))];

const accepted = allWires.filter(({ requests }) => !requests.names).map(({ requests }) => requests.accepted);

/**
 * Members of all wires without names of their own: servers that speak several of these wires ignore the
 * members of the other wires, or read them in the same way.
 */
export const knownMembers: ReadonlySet<string> = new Set(accepted.flatMap(({ members }) => [...members]));

/** Members of any wire that make a provider work outside the conversation. */
export const hostedMembers: ReadonlySet<string> = new Set(accepted.flatMap(({ hosted }) => [...hosted]));
