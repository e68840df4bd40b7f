import type { Usage } from '../../contract/report.ts';
import { acceptedInMessages } from './accepted.ts';
import {
  type Dialect,
  member,
  parsed,
  type StreamReader,
  type Told,
  tellsOverload,
  text,
  tokens,
  toolType,
  usageOf,
} from './dialect.ts';

/** Anthropic's Messages. */
export const anthropicMessages: Dialect = {
  errorBody: (status, _code, message) => ({ type: 'error', error: { type: errorType(status), message } }),
  readAnswer: (body) => ({
    usage: messagesUsage(member(body, 'usage')),
    answeredBy: text(member(body, 'model')),
    complete: member(body, 'type') === 'message',
    failure: text(member(member(body, 'error'), 'message')),
    overloaded: tellsOverload(member(body, 'error')),
  }),
  readStream,
  accepted: acceptedInMessages,
  hostedTool,
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

const telling = /"type"\s*:\s*"(message_start|message_delta|message_stop|error)"/;

function readStream(): StreamReader {
  const told: Told = { usage: {}, answeredBy: undefined, complete: false, failure: undefined };
  const counts: Record<string, unknown> = {};
  return {
    event(data) {
      if (!telling.test(data)) return;
      const event = parsed(data);
      const type = member(event, 'type');
      if (type === 'error') {
        told.failure ??= text(member(member(event, 'error'), 'message')) ?? 'it failed';
        told.overloaded ??= tellsOverload(member(event, 'error'));
      }
      if (type === 'message_stop') told.complete = true;
      if (type === 'message_start') {
        const message = member(event, 'message');
        told.answeredBy ??= text(member(message, 'model'));
        // Its output tokens are those of the first moment.
        const { output_tokens, ...prompt } = Object(member(message, 'usage'));
        Object.assign(counts, prompt);
      }
      // Counts of a delta are of the whole message so far; those it leaves out, or has as null, stay.
      if (type === 'message_delta') Object.assign(counts, withoutNull(member(event, 'usage')));
      told.usage = messagesUsage(counts);
    },
    told: () => told,
  };
}

function withoutNull(usage: unknown): object {
  return Object.fromEntries(Object.entries(Object(usage)).filter(([, value]) => value !== null));
}

/** `input_tokens` are the ones beside the cache, so the prompt is the sum of three. */
function messagesUsage(usage: unknown): Usage {
  const plain = tokens(member(usage, 'input_tokens'));
  const cacheReadTokens = tokens(member(usage, 'cache_read_input_tokens'));
  const cacheWriteTokens = tokens(member(usage, 'cache_creation_input_tokens'));
  return usageOf({
    inputTokens: plain === undefined ? undefined : plain + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0),
    outputTokens: tokens(member(usage, 'output_tokens')),
    cacheReadTokens,
    cacheWriteTokens,
  });
}

/** Tools whose calls come back to the client, and the search among the request's own tools; all else runs at the provider. */
const clientsOwn = /^(custom|(bash|text_editor|computer|memory|tool_search_tool_(regex|bm25))_\d{8})$/;

function hostedTool(tool: unknown): string | undefined {
  const type = member(tool, 'type') ?? 'custom';
  return typeof type === 'string' && clientsOwn.test(type) ? undefined : toolType(tool);
}
