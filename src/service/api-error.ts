import { OffsiteError } from '../base/offsite-error.ts';
import type { DecodeErrorBody, Issue } from '../contract/errors.ts';
import { printPath } from '../contract/errors.ts';

/**
 * For statuses that the specification does not list, the bodies have the same form, with Offsite's own tags.
 */
const tags = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  413: 'PayloadTooLarge',
  415: 'UnsupportedMediaType',
  429: 'TooManyRequests',
} as const;

type ErrorStatus = 400 | keyof typeof tags;
type ErrorBody = DecodeErrorBody | { _tag: (typeof tags)[keyof typeof tags]; message: string };

/** A request gets an error status because of what it asks for, not because the service failed. */
export class ApiError extends OffsiteError {
  override readonly name = 'ApiError';
  readonly status: ErrorStatus;
  readonly body: ErrorBody;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: ErrorStatus, body: ErrorBody, headers: Record<string, string> = {}) {
    super(body.message, { code: `SERVICE_REFUSED_${status}`, kind: 'input' });
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

export function refuse(
  status: keyof typeof tags,
  message: string,
  headers: Record<string, string> = {},
): ApiError {
  return new ApiError(status, { _tag: tags[status], message }, headers);
}

/** A 400. The message names the first few issues, for people; programs read `issues`. */
export function refuseBody(issues: Issue[]): ApiError {
  const named = issues
    .slice(0, 3)
    .map(({ path, message }) => (path.length ? `${printPath(path)}: ${message}` : message));
  const rest = issues.length > named.length ? `; and ${issues.length - named.length} more` : '';
  return new ApiError(400, { _tag: 'HttpApiDecodeError', message: named.join('; ') + rest, issues });
}
