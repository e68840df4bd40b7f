import { member, text } from './lenient.ts';

/** The error body of OpenAI's two wires. */
export function openAiError(status: number, code: string, message: string): object {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  return { error: { message, type, param: code === 'model_not_found' ? 'model' : null, code } };
}

/** The message of an error object, or the string that some servers send instead. */
export function errorMessage(error: unknown): string | undefined {
  if (error === undefined || error === null) return undefined;
  return text.parse(member(error, 'message')) ?? text.parse(error) ?? text.parse(member(error, 'code'));
}

export function openAiModelList(names: readonly string[]): object {
  return { object: 'list', data: names.map(openAiModelEntry) };
}

/** The creation date is unknown, so this uses the epoch. */
export function openAiModelEntry(name: string): object {
  return { id: name, object: 'model', created: 0, owned_by: 'offsite' };
}
