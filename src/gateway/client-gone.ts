import { OffsiteError } from '../offsite-error.ts';

/** Why a request of the sandbox ends when its client does. */
export function clientGone(): OffsiteError {
  return new OffsiteError('its client ended it', { code: 'CLIENT_GONE', kind: 'infrastructure' });
}
