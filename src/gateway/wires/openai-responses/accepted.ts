import type { Accepted } from '../wire-descriptor.ts';
import { words } from '../words.ts';

export const accepted: Accepted = {
  members: words(`
    model input instructions tools tool_choice parallel_tool_calls stream stream_options store background
    include reasoning text temperature top_p top_k min_p top_logprobs max_output_tokens max_tool_calls
    metadata client_metadata previous_response_id prompt_cache_key prompt_cache_retention safety_identifier
    service_tier truncation user seed stop presence_penalty frequency_penalty context_management
    chat_template_kwargs`),
  hosted: words('prompt conversation'),
  parts: words(`
    message input_text output_text text refusal input_image input_file input_audio summary_text
    reasoning_text reasoning function_call function_call_output custom_tool_call custom_tool_call_output
    local_shell_call local_shell_call_output shell_call shell_call_output apply_patch_call
    apply_patch_call_output tool_search_call tool_search_output item_reference compaction compaction_summary
    compaction_trigger context_compaction ghost_snapshot agent_message stdout stderr`),
  toolMembers: words(`
    type name description parameters strict format tools environment execution defer_loading output_schema
    allowed_callers`),
};
