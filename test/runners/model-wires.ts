/**
 * The scripted model's answers, as each wire has them. Put into sandboxes beside model-server.ts: it stands
 * alone.
 */

export interface ToolUse {
  name: string;
  arguments: Record<string, unknown>;
  /** The tool server (MCP) that has it. */
  server?: string;
  /** What some harnesses offer the tools of a server in. */
  namespace?: string;
}

export interface Answer {
  /** What it thought first. */
  thought?: string | undefined;
  text: string;
  uses: (ToolUse & { id: string })[];
}

export type Wire = 'chat' | 'responses' | 'messages' | 'gemini';
export type SseEvent = [name: string | undefined, data: unknown];

/** What every answer is said to have cost. */
export const usageOfAnswer = { input: 100, cached: 20, output: 10 };

const chatUsage = {
  prompt_tokens: usageOfAnswer.input,
  completion_tokens: usageOfAnswer.output,
  total_tokens: usageOfAnswer.input + usageOfAnswer.output,
  prompt_tokens_details: { cached_tokens: usageOfAnswer.cached },
};
const responsesUsage = {
  input_tokens: usageOfAnswer.input,
  input_tokens_details: { cached_tokens: usageOfAnswer.cached },
  output_tokens: usageOfAnswer.output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: usageOfAnswer.input + usageOfAnswer.output,
};
/** In this wire, input tokens are those that were not cached. */
const messagesUsage = {
  input_tokens: usageOfAnswer.input - usageOfAnswer.cached,
  cache_read_input_tokens: usageOfAnswer.cached,
  cache_creation_input_tokens: 0,
  output_tokens: usageOfAnswer.output,
};

const geminiUsage = {
  promptTokenCount: usageOfAnswer.input,
  cachedContentTokenCount: usageOfAnswer.cached,
  candidatesTokenCount: usageOfAnswer.output,
  totalTokenCount: usageOfAnswer.input + usageOfAnswer.output,
};

function chatCalls({ uses }: Answer) {
  return uses.map(({ id, name, arguments: given }, index) => ({
    index,
    id,
    type: 'function',
    function: { name, arguments: JSON.stringify(given) },
  }));
}

/** The proof of a thought, which the harness sends back. */
const signature = 'c2lnbmVkIGJ5IGEgc2NyaXB0';

function responsesItems({ thought, text, uses }: Answer) {
  const reasoning = {
    type: 'reasoning',
    id: 'rs_1',
    summary: [{ type: 'summary_text', text: thought }],
    encrypted_content: signature,
  };
  const message = {
    type: 'message',
    id: 'msg_1',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations: [] }],
  };
  const calls = uses.map(({ id, name, arguments: given, namespace }) => ({
    type: 'function_call',
    namespace,
    id: `fc_${id}`,
    call_id: id,
    name,
    arguments: JSON.stringify(given),
    status: 'completed',
  }));
  return [...(thought === undefined ? [] : [reasoning]), ...(text === '' ? [] : [message]), ...calls];
}

function messagesBlocks({ thought, text, uses }: Answer) {
  return [
    ...(thought === undefined ? [] : [{ type: 'thinking', thinking: thought, signature }]),
    ...(text === '' ? [] : [{ type: 'text', text }]),
    ...uses.map(({ id, name, arguments: input }) => ({ type: 'tool_use', id, name, input })),
  ];
}

function geminiAnswer({ thought, text, uses }: Answer, modelVersion: string) {
  const parts = [
    ...(thought === undefined ? [] : [{ text: thought, thought: true }]),
    ...(text === '' ? [] : [{ text }]),
    ...uses.map(({ id, name, arguments: args }) => ({ functionCall: { id, name, args } })),
  ];
  const candidates = [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }];
  return { candidates, usageMetadata: geminiUsage, modelVersion };
}

export const wholeOf: Record<Wire, (answer: Answer, model: string) => unknown> = {
  chat: (answer, model) => ({
    id: 'chat_1',
    object: 'chat.completion',
    created: 0,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          reasoning_content: answer.thought,
          content: answer.text,
          tool_calls: chatCalls(answer),
        },
        finish_reason: answer.uses.length > 0 ? 'tool_calls' : 'stop',
      },
    ],
    usage: chatUsage,
  }),
  responses: (answer, model) => ({
    id: 'resp_1',
    object: 'response',
    created_at: 0,
    status: 'completed',
    model,
    output: responsesItems(answer),
    usage: responsesUsage,
  }),
  messages: (answer, model) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model,
    content: messagesBlocks(answer),
    stop_reason: answer.uses.length > 0 ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: messagesUsage,
  }),
  gemini: geminiAnswer,
};

export const eventsOf: Record<Wire, (answer: Answer, model: string) => SseEvent[]> = {
  chat(answer, model) {
    const chunk = (delta: unknown, finish: string | null = null): SseEvent => [
      undefined,
      {
        id: 'chat_1',
        object: 'chat.completion.chunk',
        created: 0,
        model,
        choices: [{ index: 0, delta, finish_reason: finish }],
      },
    ];
    return [
      ...(answer.thought === undefined
        ? []
        : [chunk({ role: 'assistant', reasoning_content: answer.thought })]),
      chunk({ role: 'assistant', content: answer.text }),
      ...chatCalls(answer).map((call) => chunk({ tool_calls: [call] })),
      chunk({}, answer.uses.length > 0 ? 'tool_calls' : 'stop'),
      [
        undefined,
        { id: 'chat_1', object: 'chat.completion.chunk', created: 0, model, choices: [], usage: chatUsage },
      ],
    ];
  },
  responses(answer, model) {
    const head = { id: 'resp_1', object: 'response', created_at: 0, model };
    const event = (type: string, more: Record<string, unknown>): SseEvent => [type, { type, ...more }];
    return [
      event('response.created', { response: { ...head, status: 'in_progress', output: [] } }),
      ...responsesItems(answer).flatMap((item, output_index) => [
        event('response.output_item.added', {
          output_index,
          item: {
            ...item,
            ...('arguments' in item
              ? { arguments: '' }
              : 'summary' in item
                ? { summary: [] }
                : { content: [] }),
            status: 'in_progress',
          },
        }),
        ...('summary' in item
          ? []
          : 'arguments' in item
            ? [
                event('response.function_call_arguments.delta', {
                  item_id: item.id,
                  output_index,
                  delta: item.arguments,
                }),
                event('response.function_call_arguments.done', {
                  item_id: item.id,
                  output_index,
                  arguments: item.arguments,
                }),
              ]
            : [
                event('response.content_part.added', {
                  item_id: item.id,
                  output_index,
                  content_index: 0,
                  part: { type: 'output_text', text: '', annotations: [] },
                }),
                event('response.output_text.delta', {
                  item_id: item.id,
                  output_index,
                  content_index: 0,
                  delta: answer.text,
                }),
                event('response.output_text.done', {
                  item_id: item.id,
                  output_index,
                  content_index: 0,
                  text: answer.text,
                }),
              ]),
        event('response.output_item.done', { output_index, item }),
      ]),
      event('response.completed', {
        response: { ...head, status: 'completed', output: responsesItems(answer), usage: responsesUsage },
      }),
    ];
  },
  messages(answer, model) {
    const event = (type: string, more: Record<string, unknown>): SseEvent => [type, { type, ...more }];
    const message = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...messagesUsage, output_tokens: 1 },
    };
    return [
      event('message_start', { message }),
      ...messagesBlocks(answer).flatMap((block, index) => [
        event('content_block_start', { index, content_block: begunBlock(block) }),
        ...deltasOf(block).map((delta) => event('content_block_delta', { index, delta })),
        event('content_block_stop', { index }),
      ]),
      event('message_delta', {
        delta: { stop_reason: answer.uses.length > 0 ? 'tool_use' : 'end_turn', stop_sequence: null },
        usage: messagesUsage,
      }),
      event('message_stop', {}),
    ];
  },
  gemini(answer, model) {
    const begun = { content: { role: 'model', parts: [{ text: answer.text }] }, index: 0 };
    return [
      ...(answer.text === '' ? [] : [{ candidates: [begun], modelVersion: model }]),
      geminiAnswer({ ...answer, text: '' }, model),
    ].map((event) => [undefined, event]);
  },
};

type Block = ReturnType<typeof messagesBlocks>[number];

function begunBlock(block: Block): object {
  if ('input' in block) return { ...block, input: {} };
  return 'thinking' in block ? { ...block, thinking: '', signature: '' } : { ...block, text: '' };
}

function deltasOf(block: Block): object[] {
  if ('input' in block) return [{ type: 'input_json_delta', partial_json: JSON.stringify(block.input) }];
  if ('text' in block) return [{ type: 'text_delta', text: block.text }];
  return [
    { type: 'thinking_delta', thinking: block.thinking },
    { type: 'signature_delta', signature: block.signature },
  ];
}
