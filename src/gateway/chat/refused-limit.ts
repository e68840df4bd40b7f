import type { Wire } from '../../suite/model-config.ts';
import type { JsonObject } from '../wires/lenient.ts';
import { errorIn } from './model-errors.ts';

/**
 * The same request with the other name for its limit, if the model refused `max_tokens`, as OpenAI's newer
 * models do. Undefined if the refusal, an answer of status 400, is about something else.
 */
export function withOtherLimitName(
  { max_tokens, ...others }: JsonObject,
  wire: Wire,
  refusal: Buffer,
): JsonObject | undefined {
  if (errorIn(wire, refusal).parameter !== 'max_tokens') return undefined;
  return { ...others, max_completion_tokens: max_tokens };
}
