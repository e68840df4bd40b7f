import type { Losses, LossKind } from './losses.ts';
import type { NeutralMessage, NeutralRequest } from './neutral-request.ts';

/** Members of a request that a wire may lack, each with the kind of its loss. */
const optional = {
  seed: 'sampling',
  presencePenalty: 'sampling',
  frequencyPenalty: 'sampling',
  topK: 'sampling',
  parallelCalls: 'tool option',
} as const satisfies Partial<Record<keyof NeutralRequest, LossKind>>;

/** Leaves out members that a wire does not have. */
export function dropUnsupported(
  request: NeutralRequest,
  members: readonly (keyof typeof optional)[],
  losses: Losses,
): void {
  for (const name of members) {
    const value = request[name];
    if (value !== undefined) losses.drop(name, optional[name]);
  }
}

/**
 * The system texts at the beginning, and all other messages. A system text in the middle stays there, as the
 * user's: many chat templates fail if a system message is not the first.
 */
export function splitSystem(
  all: readonly NeutralMessage[],
  losses: Losses,
): { system: string[]; messages: Exclude<NeutralMessage, { from: 'system' }>[] } {
  const first = all.findIndex(({ from }) => from !== 'system');
  const system = all.slice(0, first === -1 ? all.length : first);
  const rest = first === -1 ? [] : all.slice(first);
  return {
    system: system.flatMap((message) =>
      message.from === 'system' && message.text !== '' ? [message.text] : [],
    ),
    messages: rest.map((message) => {
      if (message.from !== 'system') return message;
      losses.drop('messages[].role', 'order');
      return { from: 'user', parts: [{ type: 'text', text: message.text }] };
    }),
  };
}
