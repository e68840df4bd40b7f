import type { Accepted } from '../wire-descriptor.ts';
import { words } from '../words.ts';

export const accepted: Accepted = {
  members: words(`
    model messages system max_tokens metadata stop_sequences stream temperature top_k top_p tools
    tool_choice thinking service_tier context_management output_config output_format cache_control speed
    inference_geo`),
  hosted: words('mcp_servers container'),
  parts: words(`
    text image document search_result thinking redacted_thinking tool_use tool_result tool_reference
    compaction`),
  toolMembers: words(`
    type name description input_schema input_examples cache_control strict defer_loading
    eager_input_streaming allowed_callers max_characters display_width_px display_height_px display_number
    enable_zoom`),
};
