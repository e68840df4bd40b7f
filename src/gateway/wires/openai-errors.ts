import { member, text } from './dialect.ts';

/** The error body of OpenAI's two wires. */
export function openAiError(status: number, code: string, message: string): object {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  return { error: { message, type, param: code === 'model_not_found' ? 'model' : null, code } };
}

/** The message of an error object, or the text that some servers put in its place. */
export function errorMessage(error: unknown): string | undefined {
  return text(member(error, 'message')) ?? text(error) ?? text(member(error, 'code'));
}
