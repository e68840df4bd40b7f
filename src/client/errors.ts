import { type ErrorKind, messageOf, OffsiteError, type OffsiteErrorOptions } from '../base/offsite-error.ts';
import type { OperationName } from '../contract/operations.ts';

/** The call and the attempt that an error is about. */
export interface CallContext {
  operation: OperationName;
  /** From 1. */
  attempt: number;
}

interface ClientErrorOptions extends Omit<OffsiteErrorOptions, 'kind'> {
  kind?: ErrorKind;
  context: CallContext;
}

/** A call that failed; one subclass for each kind of failure. */
export class ClientError extends OffsiteError {
  override readonly name: string = 'ClientError';
  readonly operation: OperationName;
  /** How many attempts were made, including this one. */
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

/** The connection failed, or broke before the whole answer arrived. */
export class ConnectionFailure extends ClientError {
  override readonly name = 'ConnectionFailure';
  /** Whether the request may have reached the service. False is certain. */
  readonly sent: boolean;

  constructor(message: string, options: ClientErrorOptions & { sent: boolean }) {
    super(message, options);
    this.sent = options.sent;
  }
}

/** The deadline of the attempt or of the call passed. */
export class DeadlineExceeded extends ClientError {
  override readonly name = 'DeadlineExceeded';
  readonly deadlineMs: number;

  constructor(subject: 'attempt' | 'call', deadlineMs: number, context: CallContext) {
    super(`no complete answer within ${deadlineMs / 1000} s, the deadline of the ${subject}`, {
      code: subject === 'attempt' ? 'CLIENT_ATTEMPT_DEADLINE' : 'CLIENT_CALL_DEADLINE',
      hint: 'Check that the service works, or allow more time.',
      context,
    });
    this.deadlineMs = deadlineMs;
  }
}

/**
 * An answer that the specification does not document: HTML with 200, incomplete JSON, a redirect, another
 * shape, or too many bytes.
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
    'List the runs of one of its cases first: if the batch is there, starting it again runs it twice.',
  'evals.rerunCell':
    "List the case's runs first: if the new run is there, a second request queues another one.",
  'prompts.write': 'Read the prompt first: if the new version is there, writing again appends another one.',
};

/**
 * The request may have reached the service, no usable answer came back, and a retry could do the work twice.
 * `cause` is the failure, or the caller's reason to abort.
 */
export class UnknownOutcome extends ClientError {
  override readonly name = 'UnknownOutcome';

  constructor(cause: unknown, context: CallContext) {
    const why = cause instanceof ClientError ? cause.detail : messageOf(cause);
    super(`nobody knows whether the service did it: ${why}`, {
      code: 'CLIENT_OUTCOME_UNKNOWN',
      hint: whatRepeatingDoes[context.operation] ?? 'Check whether the service did it before you try again.',
      cause,
      context,
    });
  }
}
