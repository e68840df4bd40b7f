import { OffsiteError } from '../../base/offsite-error.ts';

export function notBuilt(message: string): OffsiteError {
  return new OffsiteError(message, { code: 'IMAGE_NOT_BUILT', kind: 'input' });
}

export function tookTooLong(timeoutMs: number): OffsiteError {
  return new OffsiteError(`it was stopped after ${timeoutMs / 1000} s`, {
    code: 'IMAGE_BUILD_TIMEOUT',
    kind: 'input',
  });
}
