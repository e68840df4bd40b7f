import type { Usage } from '../../contract/report.ts';
import {
  type Dialect,
  isObject,
  list,
  member,
  parsed,
  type StreamReader,
  type Told,
  text,
  tokens,
  usageOf,
} from './dialect.ts';
import { errorMessage, openAiError } from './openai-errors.ts';

/** OpenAI's Responses. */
export const openAiResponses: Dialect = {
  errorBody: openAiError,
  readAnswer: readResponse,
  readStream,
  hostedTool,
};

function readResponse(response: unknown): Told {
  const status = text(member(response, 'status'));
  return {
    usage: responsesUsage(member(response, 'usage')),
    answeredBy: text(member(response, 'model')),
    complete: status === 'completed' || status === 'incomplete',
    failure: errorMessage(member(response, 'error')) ?? (status === 'failed' ? 'it failed' : undefined),
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

function hostedTool(body: Record<string, unknown>): string | undefined {
  // A prompt kept at the provider brings tools of its own.
  if (body.prompt != null) return 'a stored prompt';
  const hosted = list(body.tools)
    .map(hostedIn)
    .find((name) => name !== undefined);
  return hosted === undefined ? undefined : `the tool ${hosted}`;
}

function hostedIn(tool: unknown): string | undefined {
  const type = member(tool, 'type');
  if (clientsOwn.has(type)) return undefined;
  // A group of tools is what its members are.
  if (type === 'namespace')
    return list(member(tool, 'tools'))
      .map(hostedIn)
      .find((name) => name !== undefined);
  if (type === 'tool_search' && member(tool, 'execution') === 'client') return undefined;
  if (type === 'shell' && (member(member(tool, 'environment'), 'type') ?? 'local') === 'local')
    return undefined;
  return text(type) ?? 'of an unknown type';
}
