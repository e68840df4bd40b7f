import type { OperationName } from '../contract/operations.ts';
import { type ErrorKind, messageOf, OffsiteError, type OffsiteErrorOptions } from '../offsite-error.ts';

/** Which attempt of which call an error is about. */
export interface CallContext {
  operation: OperationName;
  /** From 1. */
  attempt: number;
}

interface ClientErrorOptions extends Omit<OffsiteErrorOptions, 'kind'> {
  kind?: ErrorKind;
  context: CallContext;
}

/** A call that did not bring the answer it asked for; one subclass for each kind of trouble. */
export class ClientError extends OffsiteError {
  override readonly name: string = 'ClientError';
  readonly operation: OperationName;
  /** How many attempts had been made, this one included. */
  readonly attempts: number;
  /** The message without the operation and the attempt before it. */
  readonly detail: string;

  constructor(message: string, { context, kind = 'infrastructure', ...options }: ClientErrorOptions) {
    super(`${context.operation}${context.attempt > 1 ? `, attempt ${context.attempt}` : ''}: ${message}`, {
      kind,
      ...options,
    });
    this.detail = message;
    this.operation = context.operation;
    this.attempts = context.attempt;
  }
}

/** No connection, or it broke before the whole answer was there. */
export class ConnectionFailure extends ClientError {
  override readonly name = 'ConnectionFailure';
  /** Whether the request may have reached the service. False is certain. */
  readonly sent: boolean;

  constructor(message: string, options: ClientErrorOptions & { sent: boolean }) {
    super(message, options);
    this.sent = options.sent;
  }
}

/** A deadline of ours passed: the attempt's or the call's. */
export class DeadlineExceeded extends ClientError {
  override readonly name = 'DeadlineExceeded';
  readonly deadlineMs: number;

  constructor(subject: 'attempt' | 'call', deadlineMs: number, context: CallContext) {
    super(`no complete answer within ${deadlineMs / 1000} s, the deadline of the ${subject}`, {
      code: subject === 'attempt' ? 'CLIENT_ATTEMPT_DEADLINE' : 'CLIENT_CALL_DEADLINE',
      hint: 'Check that the service is well, or allow more time.',
      context,
    });
    this.deadlineMs = deadlineMs;
  }
}

/**
 * An answer that the specification does not document: HTML with 200, half a JSON, a redirect, another shape,
 * far too much.
 */
export class UndecodableAnswer extends ClientError {
  override readonly name = 'UndecodableAnswer';
  readonly status: number;
  /** From the `Retry-After` header, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    options: ClientErrorOptions & { status: number; retryAfterMs?: number | undefined },
  ) {
    super(message, options);
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
  }
}

const whatRepeatingDoes: Partial<Record<OperationName, string>> = {
  'evals.start':
    'List the runs of one of its cases first: if the batch is there, starting again runs it twice.',
  'evals.rerunCell': "List the case's runs first: if the new run is there, asking again queues another.",
  'prompts.write': 'Read the prompt first: if the new version is there, writing again appends another.',
};

/**
 * The request may have reached the service, no usable answer came back, and asking again could do the work
 * twice.
 * `cause` is what went wrong, or the caller's reason to abort.
 */
export class UnknownOutcome extends ClientError {
  override readonly name = 'UnknownOutcome';

  constructor(cause: unknown, context: CallContext) {
    const why = cause instanceof ClientError ? cause.detail : messageOf(cause);
    super(`nobody knows whether the service did it: ${why}`, {
      code: 'CLIENT_OUTCOME_UNKNOWN',
      hint: whatRepeatingDoes[context.operation] ?? 'See whether the service did it before you ask again.',
      cause,
      context,
    });
  }
}
