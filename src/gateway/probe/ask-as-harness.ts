import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Wire } from '../../suite/model-config.ts';
import type { Upstream } from '../answer.ts';
import type { ChatAnswer, ChatRequest } from '../chat/chat.ts';
import { answerOver, chatAnswerOf, writeChat } from '../chat/chat-over.ts';
import type { GatewaySession } from '../gateway.ts';
import type { ModelPart } from '../translation/neutral-request.ts';
import { type JsonObject, list, objectsOf } from '../wires/lenient.ts';
import { wireTable } from '../wires/wire-table.ts';

/** A harness whose way of asking a check repeats, and what it asks for besides the conversation. */
interface HarnessForm {
  name: string;
  /**
   * @param maxTokens the limit of an answer
   * @param body the conversation in this wire
   */
  options(maxTokens: number, body: JsonObject): JsonObject;
}

const system = 'You are an agent. Be brief.';
const said = (role: string, text: string) => ({
  type: 'message',
  role,
  content: [{ type: 'input_text', text }],
});
const agents = {
  type: 'function',
  name: 'list_agents',
  description: 'Lists agents.',
  strict: false,
  parameters: { type: 'object', properties: {}, additionalProperties: false },
};

/** What the CLIs send in each wire for a model that they do not know. `test/runners/` has their requests. */
export const harnessForms: Readonly<Record<Wire, HarnessForm>> = {
  'openai-chat': {
    name: 'opencode',
    options: (max_tokens, { messages }) => ({
      max_tokens,
      tool_choice: 'auto',
      stream_options: { include_usage: true },
      messages: [
        { role: 'system', content: system },
        ...objectsOf(messages).map((one, at, all) =>
          // As it says what a tool has shown.
          all[at - 1]?.role === 'tool' && one.role === 'user'
            ? { ...one, content: [{ type: 'text', text: one.content }] }
            : one,
        ),
      ],
    }),
  },
  'openai-responses': {
    name: 'Codex',
    options: (_, { input, tools }) => ({
      input: [
        ...[system, 'Use tools.'].map((text) => said('developer', text)),
        said('user', 'The folder is /workspace.'),
        ...list(input),
      ],
      tools: [...list(tools), { type: 'namespace', name: 'agents', description: 'Tools.', tools: [agents] }],
      reasoning: { effort: 'medium', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
      store: false,
      tool_choice: 'auto',
      parallel_tool_calls: true,
      prompt_cache_key: 'offsite-check',
      client_metadata: { session_id: 'offsite-check' },
    }),
  },
  'anthropic-messages': {
    name: 'Claude Code',
    options: (max_tokens, { messages }) => ({
      system: [{ type: 'text', text: system, cache_control: { type: 'ephemeral' } }],
      messages: list(messages).toSpliced(1, 0, { role: 'system', content: 'The folder is /workspace.' }),
      max_tokens,
      output_config: { effort: 'high' },
      thinking: { type: 'adaptive', display: 'updates' },
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      metadata: { user_id: 'offsite-check' },
    }),
  },
  gemini: {
    name: 'Gemini CLI',
    options: (maxOutputTokens) => ({
      systemInstruction: { parts: [{ text: system }], role: 'user' },
      generationConfig: {
        temperature: 1,
        topP: 0.95,
        topK: 64,
        maxOutputTokens,
        thinkingConfig: { includeThoughts: true },
      },
    }),
  },
};

/** The limit that CLIs ask for if the configuration has none. */
const usualMaxTokens = 32_000;

/** Asks through the gateway over HTTP, as a harness in a sandbox does. */
export interface HarnessDoor extends AsyncDisposable {
  /** Asks for one streamed answer in a wire. Throws as `chatOver` does. */
  ask(wire: Wire, request: ChatRequest, signal: AbortSignal): Promise<ChatAnswer>;
}

/** Opens the agent's side of a session on a port of this machine. */
export async function openHarnessDoor(
  session: GatewaySession,
  model: { name: string; maxOutputTokens: number | undefined },
): Promise<HarnessDoor> {
  const server = createServer((request, response) => session.handler.request(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const send: Upstream['send'] = async ({ wire, method, path, headers, body }, signal) => {
    const answer = await fetch(`http://127.0.0.1:${port}/${wireTable[wire].version}${path}`, {
      method,
      body: new Uint8Array(body),
      signal,
      headers: { ...headers, authorization: `Bearer ${session.token('agent')}` },
    });
    return { status: answer.status, headers: Object.fromEntries(answer.headers), body: bytesOf(answer) };
  };
  // Thoughts belong to the calls that follow them, and servers want them back.
  const said = new Map<string, ModelPart[]>();
  return {
    async ask(wire, request, signal) {
      const asked = { ...request, maxTokens: undefined };
      const written = writeChat(wireTable[wire], model.name, asked, { streamed: true, said });
      const maxTokens = model.maxOutputTokens ?? usualMaxTokens;
      const body = { ...written, ...harnessForms[wire].options(maxTokens, written) };
      const to = { wire, model: model.name };
      const read = await answerOver(send, to, request, signal, { streamed: true, body });
      const given = chatAnswerOf(read);
      if (given.calls[0]) said.set(given.calls[0].id, read.parts);
      return given;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function* bytesOf({ body }: Response): AsyncGenerator<Uint8Array, void> {
  if (body) yield* body;
}
