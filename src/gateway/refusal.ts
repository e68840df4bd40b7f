import { OffsiteError } from '../offsite-error.ts';

/**
 * Why a request is not sent on, or not answered as the upstream would have it: with the status and code that
 * the wire's own error carries.
 */
export class Refusal extends OffsiteError {
  readonly status: number;

  /** `code` is upper-case, as every error's; wires that have codes show it in lower case. */
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

/** Why a request of the sandbox ends when its client does. */
export function clientGone(): OffsiteError {
  return new OffsiteError('its client ended it', { code: 'CLIENT_GONE', kind: 'infrastructure' });
}
