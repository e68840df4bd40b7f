import { anything, object, text } from './lenient.ts';

/** What a model's error says, whatever its wire. */
export interface ModelError {
  /** Undefined if there is no error, or it has no message. */
  message: string | undefined;
  /** Its code and type in the provider's own words, the most exact first. */
  codes: readonly string[];
  /** The member of the request that it refuses. */
  parameter: string | undefined;
  /** Whether the model itself failed, whatever the request. */
  isOverload: boolean;
}

const ErrorObject = object({ message: text, code: anything, type: text, status: text, param: text });

/** Reads an error object, or the string that some servers send instead. */
export function readError(error: unknown): ModelError {
  const { message, code, type, status, param } = ErrorObject.parse(error);
  const name = text.parse(code);
  const codes = [name, type, status].filter((one) => one !== undefined);
  return {
    message: message ?? text.parse(error) ?? name,
    codes,
    parameter: param,
    isOverload: [code, ...codes].some(isOverload),
  };
}

const ErrorBody = object({ error: anything });

/** Reads the body of an answer that failed: `{"error": ...}`. Some servers send the error alone. */
export function readErrorBody(document: unknown): ModelError {
  const alone = readError(document);
  const { error } = ErrorBody.parse(document);
  if (error === undefined || error === null) return alone;
  const inside = readError(error);
  return { ...inside, message: inside.message ?? alone.message };
}

/** The codes and types that providers' APIs use for their own failures. */
const ownFailures: ReadonlySet<unknown> = new Set([
  ...['overloaded_error', 'api_error', 'rate_limit_error', 'timeout_error'],
  ...['server_error', 'rate_limit_exceeded', 'insufficient_quota'],
]);

/** Some servers use an HTTP status as the code. */
function isOverload(code: unknown): boolean {
  return ownFailures.has(code) || Number(code) === 429 || Number(code) >= 500;
}
