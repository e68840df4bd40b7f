import { fields, member, tokensIn, toolType, words } from '../lenient.ts';
import { openAiAccountHeaders, openAiError, openAiModels, openAiVariables } from '../openai.ts';
import type { Accepted, WireDescriptor } from '../wire-descriptor.ts';
import { readAnswer } from './read-answers.ts';
import { readMessages, readRequest, readTools, writeRequest } from './requests.ts';
import { writeAnswer, writeStream } from './write-answers.ts';

const accepted: Accepted = {
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

/**
 * Tools whose calls come back to the client; all others count as run by the provider, including unknown ones.
 */
const clientsOwn: ReadonlySet<unknown> = new Set(['function', 'custom', 'local_shell', 'apply_patch']);

function hostedTool(tool: unknown): string | undefined {
  const type = member(tool, 'type');
  // The tools of a group are judged like all others, wherever they appear.
  if (clientsOwn.has(type) || type === 'namespace') return undefined;
  if (type === 'tool_search' && member(tool, 'execution') === 'client') return undefined;
  const environment = member(tool, 'environment');
  if (type === 'shell' && (environment == null || member(environment, 'type') === 'local')) return undefined;
  return toolType(tool);
}

/** OpenAI's Responses. */
export const openAiResponses: WireDescriptor = {
  name: 'openai-responses',
  title: 'OpenAI responses',
  version: 'v1',
  endpoints: [
    { path: '/responses' },
    {
      path: '/responses/input_tokens',
      writeCount: (input_tokens) => ({ object: 'response.input_tokens', input_tokens }),
    },
  ],
  auth: 'bearer',
  ownHeaders: [],
  passedHeaders: {},
  accountHeaders: openAiAccountHeaders,
  headers: {},
  variables: openAiVariables,
  errorBody: openAiError,
  models: openAiModels,
  requests: { accepted, hostedTool },
  translation: {
    readRequest,
    readMessages,
    readTools,
    writeRequest,
    read: readAnswer,
    writeAnswer,
    writeStream,
    path: () => '/responses',
    count: {
      path: () => '/responses/input_tokens',
      write: ({ model, input, instructions, tools, tool_choice, text, reasoning }) =>
        fields({ model, input, instructions, tools, tool_choice, text, reasoning }),
      read: (body) => tokensIn(body, 'input_tokens'),
    },
  },
};
