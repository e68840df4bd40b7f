import { expect, test } from 'vitest';
import { readErrorBody, readErrorText } from '../../src/gateway/wires/model-error.ts';

test.each([
  [{ error: { message: 'no', type: 'a', code: 'b', param: 'c' } }, 'no', ['b', 'a'], ['c'], false],
  // Codes count without a message too: a quota that is used up must not be asked again.
  [{ error: { type: 'insufficient_quota' } }, undefined, ['insufficient_quota'], [], true],
  [{ error: { code: 503, status: 'UNAVAILABLE' }, message: 'no' }, 'no', ['UNAVAILABLE'], [], true],
  [{ error: 'no' }, 'no', [], [], false],
  [{ error: null, message: 'no', code: 'b' }, 'no', ['b'], [], false],
  [{ message: 'no' }, 'no', [], [], false],
  ['no', 'no', [], [], false],
  [undefined, undefined, [], [], false],
])('the error %j', (body, message, codes, parameters, isOverload) => {
  expect(readErrorBody(body)).toEqual({ message, codes, parameters, isOverload });
});

test.each([
  ['plain text', 'The GPU\n has no memory left', 'The GPU has no memory left', []],
  ['a string', '"not now"', 'not now', []],
  ['a detail', '{"detail":"Model is loading"}', 'Model is loading', []],
  [
    'a list of detail',
    '{"detail":[{"loc":["body","tools",3,"name"],"msg":"too long","input":{"param":"x"}},{"msg":"and more"}]}',
    'tools.3.name: too long; and more',
    ['tools.3.name'],
  ],
  ['an object of its own', '{"object":"error","message":"no such model","param":null}', 'no such model', []],
  [
    'a message that is a document',
    '{"object":"error","message":{"detail":[{"loc":["body","seed"],"msg":"not permitted"}]}}',
    'seed: not permitted',
    ['seed'],
  ],
  ['a list', '[{"error":{"code":400,"message":"bad key"}}]', 'bad key', []],
  [
    'violations of fields',
    '{"error":{"message":"invalid","details":[{"fieldViolations":[{"field":"top_k"}]}]}}',
    'invalid',
    ['top_k'],
  ],
  [
    'a status and a message',
    '{"error":"Bad Request","message":"body too long"}',
    'Bad Request: body too long',
    [],
  ],
  ['a fault', '{"fault":{"faultstring":"quota"}}', 'quota', []],
  ['a page', '<!DOCTYPE html>\n<html><head><title>Sign in </title></head>', 'a web page: Sign in', []],
  ['a page without a title', '<html><body><p>Please <b>log in</b></p>', 'a web page: Please log in', []],
  ['a document of an unknown form', '{"wat": [1, 2]}', '{"wat": [1, 2]}', []],
  ['nothing', ' ', undefined, []],
])('the words of a server: %s', (_, body, message, parameters) => {
  expect(readErrorText(body)).toMatchObject({ message, parameters });
});
