import { type Received, type Step, type TestUpstream, testUpstream } from '../test-upstream.ts';

/** What a server answers on a route: `GET /props`. Undefined for a route that it does not have. */
type Routes = Readonly<Record<string, Step | undefined>>;

export const ok =
  (body: unknown, status = 200): Step =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

/** A real HTTP server with these routes. `missing` answers all others. */
export function serverOf(
  routes: Routes,
  missing: Step = ok({ error: 'not found' }, 404),
): Promise<TestUpstream> {
  return testUpstream((response, received) => stepFor(routes, received, missing)(response, received));
}

function stepFor(routes: Routes, { method, path }: Received, missing: Step): Step {
  return routes[`${method} ${path.split('?', 1)[0]}`] ?? missing;
}

/** Answers of OpenAI's kind to a request without messages. */
const noMessages = ok({ error: { message: "'messages' is required", type: 'invalid_request_error' } }, 400);
const noInput = ok({ error: { message: "'input' is required", type: 'invalid_request_error' } }, 400);
const noAnthropic = ok(
  { type: 'error', error: { type: 'invalid_request_error', message: 'messages: Field required' } },
  400,
);

/** https://github.com/ollama/ollama/blob/main/docs/api.md */
export const ollamaRoutes: Routes = {
  'GET /api/version': ok({ version: '0.14.2' }),
  'GET /api/tags': ok({
    models: [
      {
        name: 'qwen3-coder:30b',
        model: 'qwen3-coder:30b',
        modified_at: '2026-05-04T14:56:49.277302595-07:00',
        size: 18556700761,
        digest: '06c1097efce0431c2045fe7b2e5108366e43bee1b4603a7aded8f21689e90bca',
        details: {
          format: 'gguf',
          family: 'qwen3moe',
          parameter_size: '30.5B',
          quantization_level: 'Q4_K_M',
        },
      },
      { name: 'llama3.2:latest', model: 'llama3.2:latest', size: 2019393189 },
    ],
  }),
  'GET /api/ps': ok({
    models: [{ name: 'qwen3-coder:30b', model: 'qwen3-coder:30b', context_length: 4096 }],
  }),
  'POST /api/show': ok({
    parameters: 'temperature                    0.7\nnum_ctx                        32768',
    template: '{{ .Prompt }}',
    details: { format: 'gguf', family: 'qwen3moe' },
    model_info: { 'general.architecture': 'qwen3moe', 'qwen3moe.context_length': 262144 },
    capabilities: ['completion', 'tools'],
  }),
  'GET /v1/models': ok({
    object: 'list',
    data: [
      { id: 'qwen3-coder:30b', object: 'model', created: 1767225600, owned_by: 'library' },
      { id: 'llama3.2:latest', object: 'model', created: 1767225600, owned_by: 'library' },
    ],
  }),
  'POST /v1/chat/completions': noMessages,
  'POST /v1/responses': noInput,
  'POST /v1/messages': noAnthropic,
};

/** https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md */
export const llamaCppRoutes: Routes = {
  'GET /props': ok({
    default_generation_settings: {
      id: 0,
      n_ctx: 32768,
      speculative: false,
      is_processing: false,
      params: {},
    },
    total_slots: 2,
    model_path: '/models/qwen2.5-coder-7b-instruct-q4_k_m.gguf',
    chat_template: '…',
    modalities: { vision: false },
    build_info: 'b6000-abc1234',
    is_sleeping: false,
  }),
  'GET /v1/models': ok({
    object: 'list',
    data: [
      {
        id: 'qwen2.5-coder',
        object: 'model',
        created: 1735142223,
        owned_by: 'llamacpp',
        meta: { vocab_type: 2, n_vocab: 128256, n_ctx_train: 131072, n_embd: 4096, size: 4912898304 },
      },
    ],
  }),
  'POST /v1/chat/completions': ok(
    { error: { code: 500, message: "'messages' is required", type: 'server_error' } },
    500,
  ),
};

/** https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html */
export const vllmRoutes: Routes = {
  'GET /version': ok({ version: '0.11.2' }),
  'GET /v1/models': ok({
    object: 'list',
    data: [
      {
        id: 'Qwen/Qwen3-Coder-30B-A3B-Instruct',
        object: 'model',
        created: 1739421415,
        owned_by: 'vllm',
        root: 'Qwen/Qwen3-Coder-30B-A3B-Instruct',
        parent: null,
        max_model_len: 65536,
        permission: [],
      },
    ],
  }),
  'POST /v1/chat/completions': noMessages,
  'POST /v1/responses': noInput,
};

/** https://lmstudio.ai/docs/developer/rest/endpoints */
export const lmStudioRoutes: Routes = {
  'GET /api/v0/models': ok({
    object: 'list',
    data: [
      {
        id: 'qwen/qwen3-coder-30b',
        object: 'model',
        type: 'llm',
        publisher: 'qwen',
        arch: 'qwen3moe',
        compatibility_type: 'gguf',
        state: 'loaded',
        max_context_length: 262144,
        loaded_context_length: 16384,
      },
      {
        id: 'text-embedding-nomic-embed-text-v1.5',
        object: 'model',
        type: 'embeddings',
        max_context_length: 2048,
      },
    ],
  }),
  'GET /v1/models': ok({
    object: 'list',
    data: [
      { id: 'qwen/qwen3-coder-30b', object: 'model', owned_by: 'organization_owner' },
      { id: 'text-embedding-nomic-embed-text-v1.5', object: 'model', owned_by: 'organization_owner' },
    ],
  }),
  'POST /v1/chat/completions': ok({ error: "'messages' field is required" }, 400),
  'POST /v1/responses': ok({ error: { message: "Required: 'input'" } }, 400),
};

/** It answers what it does not have with 200. */
export const lmStudioMissing: Step = (response, { method, path }) =>
  ok({ error: `Unexpected endpoint or method. (${method} ${path})` })(response, {} as never);

/** https://github.com/LostRuins/koboldcpp: it imitates Ollama and llama.cpp too. */
export const koboldCppRoutes: Routes = {
  'GET /api/extra/version': ok({ result: 'KoboldCpp', version: '1.102' }),
  'GET /api/v1/model': ok({ result: 'koboldcpp/mistral-nemo' }),
  'GET /api/extra/true_max_context_length': ok({ value: 8192 }),
  'GET /api/version': ok({ version: '0.7.0' }),
  'GET /api/tags': ok({
    models: [{ name: 'koboldcpp/mistral-nemo:latest', model: 'koboldcpp/mistral-nemo:latest' }],
  }),
  'GET /v1/models': ok({
    object: 'list',
    data: [{ id: 'koboldcpp/mistral-nemo', object: 'model', owned_by: 'koboldcpp' }],
  }),
  'POST /v1/chat/completions': ok({ detail: { msg: 'no messages', type: 'bad_input' } }, 400),
};

/** https://huggingface.github.io/text-generation-inference/ */
export const tgiRoutes: Routes = {
  'GET /info': ok({
    model_id: 'bigcode/starcoder2-15b',
    model_sha: 'fc9d2b1',
    max_concurrent_requests: 128,
    max_input_tokens: 4095,
    max_total_tokens: 4096,
    version: '3.0.0',
    router: 'text-generation-router',
  }),
  'POST /v1/chat/completions': ok(
    { error: 'missing field `messages`', error_type: 'Input validation error' },
    422,
  ),
};

/** https://docs.sglang.ai */
export const sgLangRoutes: Routes = {
  'GET /get_model_info': ok({ model_path: 'Qwen/Qwen2.5-7B-Instruct', is_generation: true }),
  'GET /get_server_info': ok({ version: '0.5.3', context_length: null }),
  'GET /v1/models': ok({
    object: 'list',
    data: [{ id: 'Qwen/Qwen2.5-7B-Instruct', object: 'model', owned_by: 'sglang', max_model_len: 32768 }],
  }),
  'POST /v1/chat/completions': noMessages,
};

/** https://docs.anthropic.com/en/api/models-list, which wants its own header. */
export const anthropicRoutes: Routes = {
  'GET /v1/models': (response, received) => {
    const refused = {
      type: 'error',
      error: { type: 'authentication_error', message: 'x-api-key header is required' },
      request_id: null,
    };
    const list = {
      data: [
        {
          type: 'model',
          id: 'claude-sonnet-4-5',
          display_name: 'Claude Sonnet 4.5',
          created_at: '2025-09-29T00:00:00Z',
          max_input_tokens: 200000,
          max_tokens: 64000,
        },
      ],
      first_id: 'claude-sonnet-4-5',
      has_more: false,
      last_id: 'claude-sonnet-4-5',
    };
    const isKnown = received.headers['x-api-key'] !== undefined && received.headers['anthropic-version'];
    return isKnown ? ok(list)(response, received) : ok(refused, 401)(response, received);
  },
  'POST /v1/messages': noAnthropic,
};

/** https://ai.google.dev/api/models */
export const geminiRoutes: Routes = {
  'GET /v1beta/models': ok({
    models: [
      {
        name: 'models/gemini-2.5-pro',
        version: '2.5',
        displayName: 'Gemini 2.5 Pro',
        inputTokenLimit: 1048576,
        outputTokenLimit: 65536,
        supportedGenerationMethods: ['generateContent', 'countTokens'],
      },
      { name: 'models/text-embedding-004', supportedGenerationMethods: ['embedContent'] },
    ],
  }),
};
