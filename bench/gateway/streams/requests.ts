import type { JsonObject } from '../../../src/gateway/wires/lenient.ts';
import type { Wire } from '../../../src/suite/model-config.ts';

/** What the server streams, which the text of the request says. */
export type Asked =
  /** One word at once, and the end 10 ms later. */
  | { stream: 'short' }
  /** `bytes` of events, each with `characters` of text. */
  | { stream: 'long'; characters: number; bytes: number };

/** The request for a stream to a model, in the wire of the client. */
export function requestOf(wire: Wire, model: string, asked: Asked): { path: string; body: string } {
  const content = `[${JSON.stringify(asked)}]`;
  const said = { role: 'user', content };
  const bodies: Record<Wire, JsonObject> = {
    'openai-chat': { model, stream: true, messages: [said] },
    'openai-responses': { model, stream: true, input: content },
    'anthropic-messages': { model, stream: true, max_tokens: 1000, messages: [said] },
    gemini: { contents: [{ role: 'user', parts: [{ text: content }] }] },
  };
  const paths: Record<Wire, string> = {
    'openai-chat': '/v1/chat/completions',
    'openai-responses': '/v1/responses',
    'anthropic-messages': '/v1/messages',
    gemini: `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
  };
  return { path: paths[wire], body: JSON.stringify(bodies[wire]) };
}

/** The wire of a path, and what the text of the request asks for. */
export function readAsked(path: string, body: string): { wire: Wire; asked: Asked } {
  const [, escaped = ''] = /\[(\{\\"stream.*?\})\]/.exec(body) ?? [];
  const wire = path.includes('/chat/')
    ? 'openai-chat'
    : path.includes('/responses')
      ? 'openai-responses'
      : path.includes('/messages')
        ? 'anthropic-messages'
        : 'gemini';
  return { wire, asked: JSON.parse(JSON.parse(`"${escaped}"`)) as Asked };
}
