import type { ToolCall } from '../chat/chat.ts';
import { modelsInData } from '../probe/server-models.ts';
import type { Losses } from '../translation/losses.ts';
import type { NeutralUsage } from '../translation/neutral-answer.ts';
import { fields, isObject, type JsonObject, objectsOf, parsed, tokensIn } from './lenient.ts';
import type { WireModels } from './wire-descriptor.ts';

export const openAiAccountHeaders = ['openai-organization', 'openai-project'];

export function openAiVariables(origin: string, key: string): Record<string, string> {
  return { OPENAI_BASE_URL: `${origin}/v1`, OPENAI_API_KEY: key };
}

/** The error body of OpenAI's two wires. */
export function openAiError(status: number, code: string, message: string): object {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  return { error: { message, type, param: code === 'model_not_found' ? 'model' : null, code } };
}

/** Most servers list their models in this form, each with more members of its own. */
export const openAiModels: WireModels = {
  read: modelsInData,
  list: (names) => ({ object: 'list', data: names.map(entry) }),
  entry,
};

/** The creation date is unknown, so this uses the epoch. */
function entry(name: string): object {
  return { id: name, object: 'model', created: 0, owned_by: 'offsite' };
}

/**
 * Servers of either wire name counts as any of the two does, and cache details as DeepSeek and OpenRouter do.
 * The input includes cached tokens, and the output reasoning.
 */
export function countsOf(usage: unknown): NeutralUsage {
  // Many events of a stream have none.
  if (!isObject(usage)) return {};
  const of = (name: string) => tokensIn(usage, name);
  const inputDetail = (name: string) =>
    tokensIn(usage.prompt_tokens_details, name) ?? tokensIn(usage.input_tokens_details, name);
  const outputDetail = (name: string) =>
    tokensIn(usage.completion_tokens_details, name) ?? tokensIn(usage.output_tokens_details, name);
  return fields({
    input: of('prompt_tokens') ?? of('input_tokens'),
    output: of('completion_tokens') ?? of('output_tokens'),
    cacheRead: inputDetail('cached_tokens') ?? of('prompt_cache_hit_tokens'),
    cacheWrite: inputDetail('cache_write_tokens'),
    reasoning: outputDetail('reasoning_tokens'),
  });
}

/**
 * Reads arguments as OpenAI's wires write them: a string that should be a JSON object. Some servers send the
 * object itself.
 */
export function argumentsOf(given: unknown): ToolCall['arguments'] {
  if (isObject(given)) return given;
  // Some servers send nothing for a tool without parameters.
  if (given === undefined || given === null || given === '') return {};
  const malformed = typeof given === 'string' ? given : JSON.stringify(given);
  const value = parsed(malformed);
  return isObject(value) ? value : { malformed };
}

/** The same for a wire that carries only objects. Any other arguments are wrapped, which is a loss. */
export function argumentsObject(given: string, losses: Losses): JsonObject {
  const read = argumentsOf(given);
  if (read.malformed === given) losses.record('answer.arguments', 'answer detail');
  return read;
}

/** Text as a string, or as a list of parts. */
export function plainText(content: unknown): string {
  if (typeof content === 'string') return content;
  return objectsOf(content)
    .map(({ text }) => text)
    .filter((text) => typeof text === 'string')
    .join('');
}
