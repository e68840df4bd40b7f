import Anthropic from '@anthropic-ai/sdk';
import {
  type Content,
  type GenerateContentParameters,
  type GenerateContentResponse,
  GoogleGenAI,
} from '@google/genai';
import OpenAI from 'openai';
import type { Wire } from '../../../src/suite/model-config.ts';

/** What an official client library made of an answer. */
export interface Heard {
  text: string;
  reasoning: string;
  calls: { id: string; name: string; arguments: unknown }[];
  stop: unknown;
  input: number | undefined;
  output: number | undefined;
  cached: number | undefined;
}

export interface At {
  /** Without `/v1`. */
  origin: string;
  token: string;
}

/** Turns of a conversation: what the user says, or the results of the calls of the answer before. */
export type Said = { user: string } | { answer: Heard; results: string[] };

export interface Client {
  ask(at: At, said: readonly Said[], streamed: boolean): Promise<Heard>;
}

const parameters = {
  type: 'object' as const,
  properties: { command: { type: 'string' } },
  required: ['command'],
};
const tool = { name: 'bash', description: 'Runs a command.' };
const system = 'Be brief.';
const model = 'big';

/** The libraries give the text of the arguments, whatever it is. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { malformed: text };
  }
}

const chat: Client = {
  async ask({ origin, token }, said, streamed) {
    const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey: token, maxRetries: 0 });
    const body: OpenAI.ChatCompletionCreateParamsNonStreaming = {
      model,
      messages: [{ role: 'system', content: system }, ...said.flatMap(chatMessages)],
      tools: [{ type: 'function', function: { ...tool, parameters } }],
    };
    const answer = streamed
      ? await client.chat.completions
          .stream({ ...body, stream: true, stream_options: { include_usage: true } })
          .finalChatCompletion()
      : await client.chat.completions.create(body);
    const [choice] = answer.choices;
    const message = choice?.message;
    return {
      text: message?.content ?? '',
      reasoning: String(Object(message).reasoning_content ?? ''),
      calls: (message?.tool_calls ?? []).map((call) => {
        if (call.type !== 'function') throw new Error(call.type);
        return { id: call.id, name: call.function.name, arguments: parse(call.function.arguments) };
      }),
      stop: choice?.finish_reason,
      input: answer.usage?.prompt_tokens,
      output: answer.usage?.completion_tokens,
      cached: answer.usage?.prompt_tokens_details?.cached_tokens,
    };
  },
};

function chatMessages(said: Said): OpenAI.ChatCompletionMessageParam[] {
  if ('user' in said) return [{ role: 'user', content: said.user }];
  const { text, calls } = said.answer;
  return [
    {
      role: 'assistant',
      content: text,
      tool_calls: calls.map((call) => ({
        id: call.id,
        type: 'function',
        function: { name: call.name, arguments: JSON.stringify(call.arguments) },
      })),
    },
    ...calls.map(({ id }, index) => ({
      role: 'tool' as const,
      tool_call_id: id,
      content: said.results[index] ?? '',
    })),
  ];
}

const responses: Client = {
  async ask({ origin, token }, said, streamed) {
    const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey: token, maxRetries: 0 });
    const body: OpenAI.Responses.ResponseCreateParamsNonStreaming = {
      model,
      instructions: system,
      store: false,
      input: said.flatMap(responseItems),
      tools: [{ type: 'function', ...tool, parameters, strict: false }],
    };
    const answer = streamed
      ? await client.responses.stream({ ...body, stream: true }).finalResponse()
      : await client.responses.create(body);
    return {
      text: answer.output_text,
      reasoning: answer.output
        .flatMap((item) => (item.type === 'reasoning' ? item.summary.map(({ text }) => text) : []))
        .join(''),
      calls: answer.output.flatMap((item) =>
        item.type === 'function_call'
          ? [{ id: item.call_id, name: item.name, arguments: parse(item.arguments) }]
          : [],
      ),
      stop: answer.incomplete_details?.reason ?? answer.status,
      input: answer.usage?.input_tokens,
      output: answer.usage?.output_tokens,
      cached: answer.usage?.input_tokens_details.cached_tokens,
    };
  },
};

function responseItems(said: Said): OpenAI.Responses.ResponseInputItem[] {
  if ('user' in said) return [{ role: 'user', content: said.user }];
  const { text, calls } = said.answer;
  return [
    { role: 'assistant', content: text },
    ...calls.map((call) => ({
      type: 'function_call' as const,
      call_id: call.id,
      name: call.name,
      arguments: JSON.stringify(call.arguments),
    })),
    ...calls.map(({ id }, index) => ({
      type: 'function_call_output' as const,
      call_id: id,
      output: said.results[index] ?? '',
    })),
  ];
}

const messages: Client = {
  async ask({ origin, token }, said, streamed) {
    const client = new Anthropic({ baseURL: origin, apiKey: token, maxRetries: 0 });
    const body: Anthropic.MessageCreateParamsNonStreaming = {
      model,
      max_tokens: 1000,
      system,
      messages: said.flatMap(anthropicMessages),
      tools: [{ ...tool, input_schema: parameters }],
    };
    const answer = streamed
      ? await client.messages.stream(body).finalMessage()
      : await client.messages.create(body);
    return {
      text: answer.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join(''),
      reasoning: answer.content
        .flatMap((block) => (block.type === 'thinking' ? [block.thinking] : []))
        .join(''),
      calls: answer.content.flatMap((block) =>
        block.type === 'tool_use' ? [{ id: block.id, name: block.name, arguments: block.input }] : [],
      ),
      stop: answer.stop_reason,
      input: answer.usage.input_tokens + (answer.usage.cache_read_input_tokens ?? 0),
      output: answer.usage.output_tokens,
      cached: answer.usage.cache_read_input_tokens ?? undefined,
    };
  },
};

function anthropicMessages(said: Said): Anthropic.MessageParam[] {
  if ('user' in said) return [{ role: 'user', content: said.user }];
  const { text, calls } = said.answer;
  return [
    {
      role: 'assistant',
      content: [
        ...(text === '' ? [] : [{ type: 'text' as const, text }]),
        ...calls.map(({ id, name, arguments: input }) => ({ type: 'tool_use' as const, id, name, input })),
      ],
    },
    {
      role: 'user',
      content: calls.map(({ id }, index) => ({
        type: 'tool_result' as const,
        tool_use_id: id,
        content: said.results[index] ?? '',
      })),
    },
  ];
}

const gemini: Client = {
  async ask({ origin, token }, said, streamed) {
    const client = new GoogleGenAI({ apiKey: token, httpOptions: { baseUrl: origin } });
    const body: GenerateContentParameters = {
      model,
      contents: said.flatMap(geminiContents),
      config: {
        systemInstruction: system,
        tools: [{ functionDeclarations: [{ ...tool, parametersJsonSchema: parameters }] }],
      },
    };
    const answers: GenerateContentResponse[] = [];
    if (streamed)
      for await (const piece of await client.models.generateContentStream(body)) answers.push(piece);
    else answers.push(await client.models.generateContent(body));
    const parts = answers.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
    const texts = (thought: boolean) =>
      parts.flatMap((part) => (Boolean(part.thought) === thought ? [part.text ?? ''] : [])).join('');
    const { candidates, usageMetadata: usage } = answers.at(-1) ?? {};
    return {
      text: texts(false),
      reasoning: texts(true),
      calls: parts.flatMap(({ functionCall: call }) =>
        call ? [{ id: call.id ?? '', name: call.name ?? '', arguments: call.args }] : [],
      ),
      stop: candidates?.[0]?.finishReason,
      input: usage?.promptTokenCount,
      output:
        usage?.candidatesTokenCount === undefined
          ? undefined
          : usage.candidatesTokenCount + (usage.thoughtsTokenCount ?? 0),
      cached: usage?.cachedContentTokenCount,
    };
  },
};

function geminiContents(said: Said): Content[] {
  if ('user' in said) return [{ role: 'user', parts: [{ text: said.user }] }];
  const { text, calls } = said.answer;
  return [
    {
      role: 'model',
      parts: [
        { text },
        // Without ids, as this library's own chat sends them back for models that give none.
        ...calls.map((call) => ({ functionCall: { name: call.name, args: Object(call.arguments) } })),
      ],
    },
    {
      role: 'user',
      parts: calls.map(({ name }, index) => ({
        functionResponse: { name, response: { output: said.results[index] ?? '' } },
      })),
    },
  ];
}

/** The official client library of each wire. */
export const clients: Readonly<Record<Wire, Client>> = {
  gemini,
  'openai-chat': chat,
  'openai-responses': responses,
  'anthropic-messages': messages,
};
