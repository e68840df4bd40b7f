import type { NeutralRequest } from '../../../src/gateway/translation/neutral-request.ts';
import type { JsonObject } from '../../../src/gateway/wires/lenient.ts';
import type { Wire } from '../../../src/suite/model-config.ts';

const parameters = { type: 'object', properties: { command: { type: 'string' } } };
const tool = { name: 'bash', description: 'Runs a command.' };

/** The same request in each wire. */
const bodies: Record<Wire, JsonObject> = {
  'openai-chat': {
    model: 'big',
    messages: [{ role: 'user', content: 'What is here?' }],
    tools: [{ type: 'function', function: { ...tool, parameters } }],
  },
  'openai-responses': {
    model: 'big',
    input: 'What is here?',
    tools: [{ type: 'function', ...tool, parameters, strict: false }],
  },
  'anthropic-messages': {
    model: 'big',
    max_tokens: 1000,
    messages: [{ role: 'user', content: 'What is here?' }],
    tools: [{ ...tool, input_schema: parameters }],
  },
  gemini: {
    contents: [{ role: 'user', parts: [{ text: 'What is here?' }] }],
    tools: [{ functionDeclarations: [{ ...tool, parametersJsonSchema: parameters }] }],
  },
};

const paths: Record<Wire, string> = {
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'anthropic-messages': '/v1/messages',
  gemini: '/v1beta/models/big:streamGenerateContent?alt=sse',
};

const neutral: NeutralRequest = {
  model: 'big',
  streamed: true,
  usageAsked: false,
  messages: [{ from: 'user', parts: [{ type: 'text', text: 'What is here?' }] }],
  tools: [{ ...tool, parameters }],
  stop: [],
};

export const requests = {
  neutral,
  of(wire: Wire, streamed: boolean): { path: string; body: JsonObject } {
    const path = streamed
      ? paths[wire]
      : paths[wire].replace('streamGenerateContent?alt=sse', 'generateContent');
    return { path, body: { ...bodies[wire], ...(wire !== 'gemini' && { stream: streamed }) } };
  },
};
