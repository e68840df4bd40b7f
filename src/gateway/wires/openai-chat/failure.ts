import { otherStopNamed } from '../../translation/read-answers.ts';
import { isObject, type JsonObject, member, objectsOf } from '../lenient.ts';
import { type ModelError, readError } from '../model-error.ts';

/** The error that an answer or a chunk of status 200 carries, in each of the forms that servers use. */
export function failureIn(chunk: JsonObject): ModelError | undefined {
  const { error, base_resp: response } = chunk;
  // MiniMax tells each success too.
  if (Number(member(response, 'status_code') ?? 0) !== 0) return readError(response);
  if (Number(chunk.error_code ?? 0) !== 0) return readError(chunk);
  if (error !== undefined && error !== null && error !== false && error !== '') {
    const found = readError(error);
    return { ...found, message: found.message ?? readError(chunk).message ?? 'it failed' };
  }
  for (const { error, finish_reason: reason } of objectsOf(chunk.choices)) {
    if (isObject(error)) return readError(error);
    if (otherStopNamed(reason) === 'failed')
      return readError({ message: `the answer ended as ${JSON.stringify(reason)}` });
  }
  if (chunk.choices !== undefined) return undefined;
  // Servers put their words under many names. A chunk without choices has no others.
  const found = readError(chunk);
  return found.message === undefined && chunk.object !== 'error' ? undefined : found;
}
