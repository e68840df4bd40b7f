import { expect, test } from 'vitest';
import { readErrorBody } from '../../src/gateway/wires/model-error.ts';

test.each([
  [{ error: { message: 'no', type: 'a', code: 'b', param: 'c' } }, 'no', ['b', 'a'], 'c', false],
  // Codes count without a message too: a quota that is used up must not be asked again.
  [{ error: { type: 'insufficient_quota' } }, undefined, ['insufficient_quota'], undefined, true],
  [{ error: { code: 503, status: 'UNAVAILABLE' }, message: 'no' }, 'no', ['UNAVAILABLE'], undefined, true],
  [{ error: 'no' }, 'no', [], undefined, false],
  [{ error: null, message: 'no', code: 'b' }, 'no', ['b'], undefined, false],
  [{ message: 'no' }, 'no', [], undefined, false],
  ['no', 'no', [], undefined, false],
  [undefined, undefined, [], undefined, false],
])('the error %j', (body, message, codes, parameter, isOverload) => {
  expect(readErrorBody(body)).toEqual({ message, codes, parameter, isOverload });
});
