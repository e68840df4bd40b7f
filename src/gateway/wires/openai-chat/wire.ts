import { isObject, member, toolType, words } from '../lenient.ts';
import { openAiAccountHeaders, openAiError, openAiModels, openAiVariables } from '../openai.ts';
import type { Accepted, WireDescriptor } from '../wire-descriptor.ts';
import { readAnswer, writeAnswer, writeStream } from './answers.ts';
import { readMessages, readRequest, readTools, writeRequest } from './requests.ts';

/**
 * OpenAI's members, and those that control sampling and reasoning in vLLM, llama.cpp, SGLang, Qwen, GLM and
 * OpenRouter.
 */
const accepted: Accepted = {
  members: words(`
    model messages tools tool_choice parallel_tool_calls functions function_call stream stream_options
    temperature top_p top_k top_a min_p typical_p n stop stop_token_ids max_tokens min_tokens
    max_completion_tokens presence_penalty frequency_penalty repetition_penalty repeat_penalty
    length_penalty logit_bias logprobs top_logprobs seed user response_format prediction modalities audio
    store metadata service_tier safety_identifier prompt_cache_key prompt_cache_retention cache_control
    cache_prompt reasoning_effort reasoning include_reasoning reasoning_format thinking enable_thinking
    preserve_thinking thinking_budget verbosity chat_template_kwargs guided_json guided_regex guided_choice
    guided_grammar structured_outputs grammar json_schema skip_special_tokens ignore_eos tool_stream
    vl_high_resolution_images safe_prompt random_seed usage keep_alive num_ctx`),
  hosted: words('web_search_options plugins search_parameters search_options enable_search'),
  parts: words('text image_url input_audio video_url audio_url file refusal thinking reasoning'),
  toolMembers: words('type function custom strict cache_control'),
};

/** Without it a stream does not report its usage. */
const usageOption = { member: 'stream_options', option: 'include_usage' };

/** Tools that a client runs itself; all others count as the provider's, including unknown ones. */
const clientsOwn: ReadonlySet<unknown> = new Set(['function', 'custom']);

function hostedTool(tool: unknown): string | undefined {
  const type = member(tool, 'type') ?? (isObject(member(tool, 'function')) ? 'function' : undefined);
  return clientsOwn.has(type) ? undefined : toolType(tool);
}

/** Chat Completions, as defined by OpenAI and spoken by many servers. */
export const openAiChat: WireDescriptor = {
  name: 'openai-chat',
  title: 'OpenAI chat completions',
  version: 'v1',
  endpoints: [{ path: '/chat/completions' }],
  auth: 'bearer',
  ownHeaders: [],
  passedHeaders: { 'openai-beta': /^[\w-]+=[\w-]+(\s*,\s*[\w-]+=[\w-]+){0,20}$/ },
  accountHeaders: openAiAccountHeaders,
  headers: {},
  variables: openAiVariables,
  errorBody: openAiError,
  models: openAiModels,
  requests: { accepted, hostedTool, usageOption },
  translation: {
    readRequest,
    readMessages,
    readTools,
    writeRequest,
    read: readAnswer,
    writeAnswer,
    writeStream,
    path: () => '/chat/completions',
  },
};
