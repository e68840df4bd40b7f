import type { Usage } from '../../contract/report.ts';
import { acceptedInResponses } from './accepted.ts';
import {
  type Dialect,
  isObject,
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
import { errorMessage, openAiError } from './openai-errors.ts';

/** OpenAI's Responses. */
export const openAiResponses: Dialect = {
  errorBody: openAiError,
  readAnswer: readResponse,
  readStream,
  accepted: acceptedInResponses,
  hostedTool,
};

function readResponse(response: unknown): Told {
  const status = text(member(response, 'status'));
  return {
    usage: responsesUsage(member(response, 'usage')),
    answeredBy: text(member(response, 'model')),
    complete: status === 'completed' || status === 'incomplete',
    failure: errorMessage(member(response, 'error')) ?? (status === 'failed' ? 'it failed' : undefined),
    overloaded: tellsOverload(member(response, 'error')),
  };
}

/** The events that carry a whole response, and the one that carries an error. Others are not worth parsing. */
const telling = /"type"\s*:\s*"(response\.(created|completed|incomplete|failed)|error)"/;

function readStream(): StreamReader {
  let told: Told = { usage: {}, answeredBy: undefined, complete: false, failure: undefined };
  return {
    event(data) {
      if (!telling.test(data)) return;
      const event = parsed(data);
      if (member(event, 'type') === 'error') {
        told.failure ??= errorMessage(event) ?? errorMessage(member(event, 'error')) ?? 'it failed';
        told.overloaded ??= tellsOverload(event) || tellsOverload(member(event, 'error'));
        return;
      }
      const response = member(event, 'response');
      // Text of the model's own may look like an event; only an event has a response.
      if (isObject(response)) told = readResponse(response);
    },
    told: () => told,
  };
}

function responsesUsage(usage: unknown): Usage {
  const details = member(usage, 'input_tokens_details');
  return usageOf({
    inputTokens: tokens(member(usage, 'input_tokens')),
    outputTokens: tokens(member(usage, 'output_tokens')),
    cacheReadTokens: tokens(member(details, 'cached_tokens')),
    cacheWriteTokens: tokens(member(details, 'cache_write_tokens')),
  });
}

/** Tools whose calls come back to the client; all else runs at the provider, also what this gateway has never heard of. */
const clientsOwn: ReadonlySet<unknown> = new Set(['function', 'custom', 'local_shell', 'apply_patch']);

function hostedTool(tool: unknown): string | undefined {
  const type = member(tool, 'type');
  // The tools of a group are judged as all tools are, wherever they stand.
  if (clientsOwn.has(type) || type === 'namespace') return undefined;
  if (type === 'tool_search' && member(tool, 'execution') === 'client') return undefined;
  const environment = member(tool, 'environment');
  if (type === 'shell' && (environment == null || member(environment, 'type') === 'local')) return undefined;
  return toolType(tool);
}
