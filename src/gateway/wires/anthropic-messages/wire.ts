import { modelsInData } from '../../probe/server-models.ts';
import { fields, member, tokensIn, toolType, words } from '../lenient.ts';
import type { Accepted, WireDescriptor, WireModels } from '../wire-descriptor.ts';
import { readAnswer, writeAnswer, writeStream } from './answers.ts';
import { readMessages, readRequest, readTools, writeRequest } from './requests.ts';

const accepted: Accepted = {
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

/**
 * Tools whose calls come back to the client, and the search among the request's own tools; all other tools
 * run at the provider.
 */
const clientsOwn = /^(custom|(bash|text_editor|computer|memory|tool_search_tool_(regex|bm25))_\d{8})$/;

function hostedTool(tool: unknown): string | undefined {
  const type = member(tool, 'type') ?? 'custom';
  return typeof type === 'string' && clientsOwn.test(type) ? undefined : toolType(tool);
}

/** https://docs.anthropic.com/en/api/models-list */
const models: WireModels = {
  query: 'limit=1000',
  read: (document) =>
    document.has_more !== undefined && document.object !== 'list' ? modelsInData(document) : undefined,
  list: (names) => ({
    data: names.map(entry),
    has_more: false,
    first_id: names[0] ?? null,
    last_id: names.at(-1) ?? null,
  }),
  entry,
};

/** The creation date is unknown, so this uses the epoch. */
function entry(name: string): object {
  return { type: 'model', id: name, display_name: name, created_at: new Date(0).toISOString() };
}

const parameter = 'beta=true';

/** Anthropic's Messages. */
export const anthropicMessages: WireDescriptor = {
  name: 'anthropic-messages',
  title: 'Anthropic messages',
  version: 'v1',
  endpoints: [
    { path: '/messages', parameter },
    { path: '/messages/count_tokens', parameter, writeCount: (input_tokens) => ({ input_tokens }) },
  ],
  auth: 'x-api-key',
  ownHeaders: ['anthropic-version', 'x-api-key'],
  passedHeaders: {
    'anthropic-version': /^\d{4}-\d{2}-\d{2}$/,
    // Beta features allow more members in a body. The gateway judges the body in any case.
    'anthropic-beta': /^[a-z0-9-]+(\s*,\s*[a-z0-9-]+){0,50}$/,
  },
  accountHeaders: ['anthropic-organization-id'],
  headers: { 'anthropic-version': '2023-06-01' },
  variables: (origin, key) => ({ ANTHROPIC_BASE_URL: origin, ANTHROPIC_API_KEY: key }),
  errorBody: (status, _code, message) => ({ type: 'error', error: { type: errorType(status), message } }),
  models,
  requests: { accepted, hostedTool, formIsTool: true },
  translation: {
    readRequest,
    readMessages,
    readTools,
    writeRequest,
    read: readAnswer,
    writeAnswer,
    writeStream,
    path: () => '/messages',
    count: {
      path: () => '/messages/count_tokens',
      // The endpoint refuses members that shape the answer.
      write: ({ model, messages, system, tools, tool_choice }) =>
        fields({ model, messages, system, tools, tool_choice }),
      read: (body) => tokensIn(body, 'input_tokens'),
    },
  },
};

function errorType(status: number): string {
  const types: Record<number, string> = {
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
  };
  return types[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
}
