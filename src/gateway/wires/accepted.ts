/** What requests of one wire may hold. What is not listed is refused: this gateway does not know what it does. */
export interface Accepted {
  /** Members of the request. */
  members: ReadonlySet<string>;
  /** Members that make the provider work outside the conversation; they pass with `hostedTools: allow`. */
  hosted: ReadonlySet<string>;
  /** Types of what a conversation is made of. */
  parts: ReadonlySet<unknown>;
  /** Members of a tool. */
  toolMembers: ReadonlySet<string>;
}

const set = (words: string): ReadonlySet<string> => new Set(words.trim().split(/\s+/));

/** Chat Completions: OpenAI's members, and those by which vLLM, llama.cpp, SGLang, Qwen, GLM and OpenRouter sample and think. */
export const acceptedInChat: Accepted = {
  members: set(`
    model messages tools tool_choice parallel_tool_calls functions function_call stream stream_options
    temperature top_p top_k top_a min_p typical_p n stop stop_token_ids max_tokens min_tokens max_completion_tokens
    presence_penalty frequency_penalty repetition_penalty repeat_penalty length_penalty logit_bias logprobs top_logprobs
    seed user response_format prediction modalities audio store metadata service_tier safety_identifier
    prompt_cache_key prompt_cache_retention cache_control cache_prompt reasoning_effort reasoning include_reasoning
    reasoning_format thinking enable_thinking preserve_thinking thinking_budget verbosity chat_template_kwargs
    guided_json guided_regex guided_choice guided_grammar structured_outputs grammar json_schema skip_special_tokens
    ignore_eos tool_stream vl_high_resolution_images safe_prompt random_seed usage keep_alive num_ctx`),
  hosted: set('web_search_options plugins search_parameters search_options enable_search'),
  parts: set('text image_url input_audio video_url audio_url file refusal thinking reasoning'),
  toolMembers: set('type function custom strict cache_control'),
};

export const acceptedInResponses: Accepted = {
  members: set(`
    model input instructions tools tool_choice parallel_tool_calls stream stream_options store background include
    reasoning text temperature top_p top_k min_p top_logprobs max_output_tokens max_tool_calls metadata client_metadata
    previous_response_id prompt_cache_key prompt_cache_retention safety_identifier service_tier truncation user
    seed stop presence_penalty frequency_penalty context_management chat_template_kwargs`),
  hosted: set('prompt conversation'),
  parts: set(`
    message input_text output_text text refusal input_image input_file input_audio summary_text reasoning_text reasoning
    function_call function_call_output custom_tool_call custom_tool_call_output local_shell_call
    local_shell_call_output shell_call shell_call_output apply_patch_call apply_patch_call_output
    tool_search_call tool_search_output item_reference compaction compaction_summary compaction_trigger
    context_compaction ghost_snapshot agent_message stdout stderr`),
  toolMembers: set(`
    type name description parameters strict format tools environment execution defer_loading output_schema
    allowed_callers`),
};

export const acceptedInMessages: Accepted = {
  members: set(`
    model messages system max_tokens metadata stop_sequences stream temperature top_k top_p tools tool_choice
    thinking service_tier context_management output_config output_format cache_control speed inference_geo`),
  hosted: set('mcp_servers container'),
  parts: set(`
    text image document search_result thinking redacted_thinking tool_use tool_result tool_reference compaction`),
  toolMembers: set(`
    type name description input_schema input_examples cache_control strict defer_loading eager_input_streaming
    allowed_callers max_characters display_width_px display_height_px display_number enable_zoom`),
};

const accepted: readonly Accepted[] = [acceptedInChat, acceptedInResponses, acceptedInMessages];

/** Members of any wire: servers that speak several overlook those of the others, or read them alike. */
export const knownMembers: ReadonlySet<string> = new Set(accepted.flatMap(({ members }) => [...members]));

/** Members that make a provider work outside the conversation, of any wire. */
export const hostedMembers: ReadonlySet<string> = new Set(accepted.flatMap(({ hosted }) => [...hosted]));
