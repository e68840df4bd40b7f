import { type Wire, wires } from '../../suite/model-config.ts';
import { anthropicMessages } from './anthropic-messages/wire.ts';
import { gemini } from './gemini/wire.ts';
import { openAiChat } from './openai-chat/wire.ts';
import { openAiResponses } from './openai-responses/wire.ts';
import type { WireDescriptor } from './wire-descriptor.ts';

/**
 * A wire can be described if all of its paths have one prefix (`/v1`), requests that generate are POST with a
 * JSON body to a path of no other wire, answers are JSON or server-sent events whose type follows from their
 * data, and one header carries the key. To add one:
 *
 * 1. its name in `src/record/wires.ts`; its header in `auth` of `src/suite/model-config.ts`, if that is new;
 * 2. a folder here with a `WireDescriptor`, its requests and its answers; `openai-chat/` is the smallest.
 *    Give its `requests` `names` if a member means something else there, or lets the provider act by itself;
 * 3. its line below: routes, probes, replay and metering follow from this table;
 * 4. its provider in `src/setup/models/gather-model.ts` and `src/setup/offered-models.ts`, if that is public;
 * 5. `wires` of each runner whose CLI speaks it, and the configuration of that CLI. The compiler does not
 *    notice a missing configuration. All other harnesses are translated;
 * 6. `npm run generate`, and `WRITE_MATRIX=1 npm test -- test/runners/matrix.long.test.ts`. Type errors of
 *    the tests say where an example of the wire is needed.
 */
export const wireTable: Readonly<Record<Wire, WireDescriptor>> = {
  'openai-chat': openAiChat,
  'openai-responses': openAiResponses,
  'anthropic-messages': anthropicMessages,
  gemini,
};

export const allWires: readonly WireDescriptor[] = wires.map((name) => wireTable[name]);

/** An address and a key in the variables that most clients read, of all wires. */
export function clientVariables(origin: string, key: string): Record<string, string> {
  return Object.assign({}, ...allWires.map(({ variables }) => variables(origin, key)));
}

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
