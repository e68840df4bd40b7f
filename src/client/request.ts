import type { z } from 'zod';
import { meantMember, printPath } from '../contract/errors.ts';
import { type OperationName, operations } from '../contract/operations.ts';
import type { KeyInValue, KnownKeys } from '../redaction/redactor.ts';
import type { Quote } from './options.ts';
import { ClientError, listed } from './refusal.ts';

/** A request that the contract does not allow. It was not sent. */
class RequestInvalid extends ClientError {
  override readonly name = 'RequestInvalid';
}

/** A request that contains a key. It was not sent. */
class RequestHoldsKey extends ClientError {
  override readonly name = 'RequestHoldsKey';
}

/** A result must not be lost, so keys are removed from it. Any other request with a key is refused. */
const redacted: ReadonlySet<OperationName> = new Set(['evals.reportTrial']);

/**
 * The body of a request, checked strictly against the contract, without a key. Throws the input errors {@link
 * RequestInvalid} and {@link RequestHoldsKey}.
 */
export function encodeRequest(
  operation: OperationName,
  request: unknown,
  { quote, keys }: { quote: Quote; keys: KnownKeys },
): string {
  const read = operations[operation].request.safeParse(request);
  if (!read.success) throw invalid(operation, printIssues(read.error.issues, quote, { areAll: true }));
  if (!redacted.has(operation)) refuseKeys(operation, read.data, keys);
  try {
    return redacted.has(operation) ? keys.json(read.data) : JSON.stringify(read.data);
  } catch (cause) {
    // A free-form value (a case's variables) can contain what JSON cannot: a cycle, a BigInt.
    throw invalid(operation, ' it cannot be written as JSON', cause);
  }
}

function refuseKeys(operation: OperationName, request: unknown, keys: KnownKeys): void {
  let held: KeyInValue | undefined;
  try {
    held = keys.findIn(request);
  } catch (cause) {
    // A free-form value can contain a cycle.
    if (cause instanceof RangeError) throw invalid(operation, ' it cannot be written as JSON', cause);
    throw cause;
  }
  if (!held) return;
  const { path, name, line, column } = held;
  const where = printPath(path) || 'body';
  throw new RequestHoldsKey(
    `the request was not sent: ${where} holds the key in ${name} (line ${line}, column ${column})`,
    {
      code: 'CLIENT_REQUEST_HOLDS_KEY',
      kind: 'input',
      hint: 'Remove it: the service keeps everything that it receives.',
      context: { operation, attempt: 1 },
    },
  );
}

function invalid(operation: OperationName, reason: string, cause?: unknown): RequestInvalid {
  return new RequestInvalid(`the request was not sent:${reason}`, {
    code: 'CLIENT_REQUEST_INVALID',
    kind: 'input',
    cause,
    context: { operation, attempt: 1 },
  });
}

/** A line for each issue: `\n  trial.events[3].command: expected string`. */
export function printIssues(
  issues: readonly z.core.$ZodIssue[],
  quote: Quote,
  { areAll }: { areAll: boolean },
): string {
  const print = ({ path, message }: z.core.$ZodIssue) =>
    `${quote(printPath(path) || 'body', 500)}: ${quote(message, 500)}`;
  return listed(issues.flatMap(innermost), print, { areAll });
}

/** For a union of which every member failed: the issues of the member that was probably meant. */
function innermost(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  const meant = issue.code === 'invalid_union' ? meantMember(issue.errors) : undefined;
  if (!meant) return [issue];
  return meant.flatMap((inner) => innermost({ ...inner, path: [...issue.path, ...inner.path] }));
}
