import { canonicalRequest } from '../../../src/gateway/replay/canonical-request.ts';
import type { Cassette, RecordedExchange, RecordedTrial } from '../../../src/gateway/replay/cassette.ts';
import type { NeutralMessage, NeutralRequest } from '../../../src/gateway/translation/neutral-request.ts';

export const bash = {
  name: 'bash',
  description: 'Runs a command.',
  parameters: { type: 'object', properties: { command: { type: 'string' } } },
};

export function said(text: string): NeutralMessage {
  return { from: 'user', parts: [{ type: 'text', text }] };
}

export function called(id: string, command: string): NeutralMessage {
  const call = { type: 'call' as const, id, name: 'bash', arguments: JSON.stringify({ command }) };
  return { from: 'model', parts: [call] };
}

export function returned(callId: string, text: string): NeutralMessage {
  return { from: 'tool', callId, parts: [{ type: 'text', text }], failed: false };
}

export function asks(...messages: NeutralMessage[]): NeutralRequest {
  const how = { model: 'big', streamed: false, usageAsked: false, stop: [] };
  return { ...how, messages, tools: [bash] };
}

/** An exchange whose answer is only a name. */
export function recorded(
  answer: string,
  request: NeutralRequest,
  more: Partial<RecordedExchange> = {},
): RecordedExchange {
  return {
    number: 1,
    role: 'agent',
    model: 'big',
    wire: 'openai-chat',
    from: undefined,
    request: canonicalRequest(request),
    answer: () => ({ wire: 'openai-chat', status: 200, body: Buffer.from(answer) }),
    ...more,
  };
}

export function trial(
  label: Partial<RecordedTrial['label']>,
  ...exchanges: RecordedExchange[]
): RecordedTrial {
  const numbered = exchanges.map((exchange, index) => ({ ...exchange, number: index + 1 }));
  return {
    label: { case: 'one', variant: 'codex', ordinal: 0, ...label },
    exchanges: () => numbered,
  };
}

export function cassette(...trials: RecordedTrial[]): Cassette {
  return { name: 'a cassette', trials };
}
