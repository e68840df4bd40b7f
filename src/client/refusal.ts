import { z } from 'zod';
import { type ErrorKind, messageOf, OffsiteError, type OffsiteErrorOptions } from '../base/offsite-error.ts';
import { serviceAnswers } from '../bounds/service.ts';
import { errorTags, Issue, printPath } from '../contract/errors.ts';
import type { OperationName } from '../contract/operations.ts';
import { receiving } from '../contract/receiving.ts';
import type { Quote } from './options.ts';

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

  constructor(message: string, options: ClientErrorOptions & { status: number }) {
    super(message, options);
    this.status = options.status;
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

/** One problem with a request, as the service reports it. */
export interface RefusalIssue {
  tag: string;
  /** `trial.events[3].command`; empty for the body itself. */
  path: string;
  message: string;
}

export interface ServiceRefusalParts {
  status: number;
  /** The body's `_tag`; undefined if it had none. Unknown tags are kept. */
  tag: string | undefined;
  /** The service's message, without the key. */
  said: string;
  issues: RefusalIssue[];
  /** The `WWW-Authenticate` header: where to authenticate. */
  authenticate: string | undefined;
  /** From the `Retry-After` header, in milliseconds. */
  retryAfterMs: number | undefined;
}

/**
 * The service understood the request and refused it. The documented kinds are subclasses; any other refusal
 * is this class.
 */
export class ServiceRefusal extends ClientError {
  override readonly name: string = 'ServiceRefusal';
  declare readonly status: number;
  declare readonly tag: string | undefined;
  declare readonly said: string;
  declare readonly issues: readonly RefusalIssue[];
  declare readonly authenticate: string | undefined;
  declare readonly retryAfterMs: number | undefined;

  constructor(parts: ServiceRefusalParts, options: Omit<ClientErrorOptions, 'kind'>) {
    // Waiting helps with these. With the others, the caller has to change something.
    const mayPass = parts.status >= 500 || parts.status === 408 || parts.status === 429;
    super(describe(parts), { ...options, kind: mayPass ? 'infrastructure' : 'input' });
    Object.assign(this, parts);
  }
}

/** 400: the body did not match what the service accepts. `issues` says where. */
export class DecodeRefusal extends ServiceRefusal {
  override readonly name = 'DecodeRefusal';
}
/**
 * 401: the key is missing, unknown or no longer active. `authenticate` is the value of `WWW-Authenticate`.
 */
export class Unauthorized extends ServiceRefusal {
  override readonly name = 'Unauthorized';
}
/** 403: the key lacks a permission. */
export class Forbidden extends ServiceRefusal {
  override readonly name = 'Forbidden';
}
/** 404 */
export class NotFound extends ServiceRefusal {
  override readonly name = 'NotFound';
}
/** 409: the request conflicts with an earlier change. */
export class Conflict extends ServiceRefusal {
  override readonly name = 'Conflict';
}

/** By the `_tag` of the body. */
const kinds: Readonly<Record<string, readonly [typeof ServiceRefusal, code: string, hint?: string]>> = {
  HttpApiDecodeError: [DecodeRefusal, 'SERVICE_DECODE_REFUSED'],
  Unauthorized: [
    Unauthorized,
    'SERVICE_UNAUTHORIZED',
    'Check the API key: is it complete, of this service, and still active?',
  ],
  Forbidden: [
    Forbidden,
    'SERVICE_FORBIDDEN',
    "`offsite service whoami` shows the key's permissions. `offsite service keys create --for agent` makes another key, on the machine of `offsite serve`.",
  ],
  NotFound: [NotFound, 'SERVICE_NOT_FOUND'],
  Conflict: [Conflict, 'SERVICE_CONFLICT'],
};

const RefusalBody = z.looseObject({
  _tag: z.string().optional(),
  message: z.string().optional(),
  issues: z.array(receiving(Issue)).optional().catch(undefined),
});

/**
 * Reads the body of an error answer. Returns undefined if it is not an error body. The `_tag` gives the kind;
 * if it is missing or unknown, the status does. `json` is undefined for an empty body.
 */
export function readRefusal(
  json: unknown,
  parts: Pick<ServiceRefusalParts, 'status' | 'authenticate' | 'retryAfterMs'>,
  quote: Quote,
  context: CallContext,
): ServiceRefusal | undefined {
  const read = RefusalBody.safeParse(json ?? {});
  if (!read.success) return undefined;
  const { _tag: tag = '', message = '', issues = [] } = read.data;
  const known: readonly string[] = Object.values(errorTags);
  const kind = known.includes(tag) ? tag : errorTags[parts.status as keyof typeof errorTags];
  const [Refusal, code, hint] = kinds[kind] ?? [ServiceRefusal, 'SERVICE_REFUSED'];
  const said = {
    ...parts,
    authenticate: parts.authenticate && quote(parts.authenticate),
    tag: tag === '' ? undefined : quote(tag, 100),
    said: quote(message),
    issues: issues.map((issue) => ({
      tag: quote(issue._tag, 100),
      path: quote(printPath(issue.path), 500),
      message: quote(issue.message, 500),
    })),
  };
  return new Refusal(said, { code, hint, context });
}

function describe({ status, tag, said, issues, authenticate }: ServiceRefusalParts): string {
  return [
    `the service answered ${[status, tag].filter(Boolean).join(' ')}`,
    said && `: ${said}`,
    authenticate && ` (WWW-Authenticate: ${authenticate})`,
    listed(issues, ({ path, message }) => `${path || 'body'}: ${message}`, { areAll: true }),
  ]
    .filter(Boolean)
    .join('');
}

/**
 * A line for each issue, as many as are shown, and how many more there are. If the issues may be only the
 * first ones, it says only that there are more.
 */
export function listed<One>(
  issues: readonly One[],
  print: (issue: One) => string,
  { areAll }: { areAll: boolean },
): string {
  const shown = serviceAnswers.count.issues;
  const left = issues.length - shown;
  const more = left > 0 ? [areAll ? `and ${left} more` : 'and more'] : [];
  return [...issues.slice(0, shown).map(print), ...more].map((line) => `\n  ${line}`).join('');
}
