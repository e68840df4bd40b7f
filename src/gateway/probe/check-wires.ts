import { messageOf } from '../../offsite-error.ts';
import { type Wire, wires } from '../../suite/model-config.ts';
import { askDirectly, type DirectModel } from './direct-model.ts';

export interface CheckedWire {
  wire: Wire;
  /** `missing`: the server has no such route. `failed`: it has, or may have, but gave no answer. */
  state: 'works' | 'missing' | 'failed';
  reason?: string;
}

/**
 * Sends a tiny request over each wire.
 *
 * @param known a wire that has already given an answer
 * @param options.within milliseconds for each answer
 */
export async function checkWires(
  model: DirectModel,
  known: Wire | undefined,
  { within, signal }: { within: number; signal: AbortSignal },
): Promise<CheckedWire[]> {
  const checked: CheckedWire[] = [];
  // One after another, since a local server may answer one request at a time.
  for (const wire of wires) {
    checked.push(wire === known ? { wire, state: 'works' } : await checkWire(model, wire, within, signal));
  }
  return checked;
}

async function checkWire(
  model: DirectModel,
  wire: Wire,
  within: number,
  signal: AbortSignal,
): Promise<CheckedWire> {
  let status = 0;
  const watched: DirectModel = {
    ...model,
    upstream: {
      async send(request, asking) {
        const answer = await model.upstream.send(request, asking);
        status = answer.status;
        return answer;
      },
    },
  };
  const request = {
    messages: [{ from: 'user', text: 'Answer with the one word: ready' }],
    maxTokens: 16,
  } as const;
  try {
    await askDirectly(watched, wire, request, AbortSignal.any([signal, AbortSignal.timeout(within)]));
    return { wire, state: 'works' };
  } catch (error) {
    signal.throwIfAborted();
    // LM Studio answers 200 with an error where it has no route.
    const isMissing = [200, 404, 405, 501].includes(status) || (status >= 300 && status < 400);
    return { wire, state: isMissing ? 'missing' : 'failed', reason: messageOf(error) };
  }
}
