import { OffsiteError } from '../base/offsite-error.ts';

/**
 * Why a request is not forwarded, or its answer not passed on. Has the status and code for the wire's own
 * error.
 */
export class GatewayRefusal extends OffsiteError {
  readonly status: number;

  /** `code` is upper-case, as in every error; wires that have codes show it in lower case. */
  constructor(
    status: number,
    code: string,
    message: string,
    options: { hint?: string; cause?: unknown } = {},
  ) {
    super(message, { code, kind: status < 500 ? 'input' : 'infrastructure', ...options });
    this.status = status;
  }
}

/** The reason when a request of the sandbox ends because its client disconnects. */
export function clientGone(): OffsiteError {
  return new OffsiteError('its client ended it', { code: 'CLIENT_GONE', kind: 'infrastructure' });
}
