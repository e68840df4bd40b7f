import type { Usage } from '../../contract/report.ts';
import { acceptedInChat } from './accepted.ts';
import {
  type Dialect,
  isObject,
  list,
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

/** Chat Completions, as OpenAI has it and many servers speak it. */
export const openAiChat: Dialect = {
  errorBody: openAiError,
  readAnswer: (body) => ({
    usage: chatUsage(member(body, 'usage')),
    answeredBy: text(member(body, 'model')),
    complete: Array.isArray(member(body, 'choices')),
    failure: errorMessage(member(body, 'error')),
    overloaded: tellsOverload(member(body, 'error')),
  }),
  readStream,
  accepted: acceptedInChat,
  hostedTool,
};

function readStream(): StreamReader {
  const told: Told = { usage: {}, answeredBy: undefined, complete: false, failure: undefined };
  return {
    event(data) {
      if (data.trim() === '[DONE]') {
        told.complete = true;
        return;
      }
      // Most chunks are a word of text: read only those that can tell something.
      const telling =
        told.answeredBy === undefined ||
        data.includes('"usage"') ||
        data.includes('"error"') ||
        data.includes('"finish_reason"');
      if (!telling) return;
      const chunk = parsed(data);
      told.answeredBy ??= text(member(chunk, 'model'));
      const failure = errorMessage(member(chunk, 'error'));
      if (failure !== undefined) told.overloaded ??= tellsOverload(member(chunk, 'error'));
      told.failure ??= failure;
      // Not every server ends with [DONE].
      if (list(member(chunk, 'choices')).some((choice) => text(member(choice, 'finish_reason')))) {
        told.complete = true;
      }
      // Some servers repeat a growing usage in every chunk: the last one counts. Absent and null change nothing.
      const usage = member(chunk, 'usage');
      if (isObject(usage)) told.usage = chatUsage(usage);
    },
    told: () => told,
  };
}

/** `prompt_tokens` include cached ones and `completion_tokens` include reasoning; cache details as OpenAI, DeepSeek and OpenRouter name them. */
function chatUsage(usage: unknown): Usage {
  const details = member(usage, 'prompt_tokens_details');
  return usageOf({
    inputTokens: tokens(member(usage, 'prompt_tokens')),
    outputTokens: tokens(member(usage, 'completion_tokens')),
    cacheReadTokens:
      tokens(member(details, 'cached_tokens')) ?? tokens(member(usage, 'prompt_cache_hit_tokens')),
    cacheWriteTokens: tokens(member(details, 'cache_write_tokens')),
  });
}

/** Tools that a client runs itself; all else is the provider's, also what this gateway has never heard of. */
const clientsOwn: ReadonlySet<unknown> = new Set(['function', 'custom']);

function hostedTool(tool: unknown): string | undefined {
  const type = member(tool, 'type') ?? (isObject(member(tool, 'function')) ? 'function' : undefined);
  return clientsOwn.has(type) ? undefined : toolType(tool);
}
