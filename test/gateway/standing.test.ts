import { expect, test } from 'vitest';
import { meterOf } from '../../src/gateway/metering.ts';
import { faultOf, type Outcome, Standings } from '../../src/gateway/session-record.ts';

function after(...outcomes: readonly Outcome[]) {
  const standings = new Standings();
  outcomes.forEach((outcome, at) => {
    standings.note('agent', outcome, false, `request ${at}`);
  });
  return standings.of('agent');
}

test('the last request that was decided says whether the model has failed', () => {
  expect(after()).toEqual({ acted: false, modelFailure: undefined });
  expect(after('answered')).toEqual({ acted: true, modelFailure: undefined });
  expect(after('answered', 'model')).toMatchObject({ acted: true, modelFailure: 'request 1' });
  expect(after('model', 'answered')).toEqual({ acted: true, modelFailure: undefined });
  expect(after('model', 'request')).toEqual({
    acted: false,
    modelFailure: undefined,
    lastFailure: 'request 1',
  });
  // What its client ends, or the gateway refuses, says nothing of the model.
  expect(after('model', 'undecided')).toMatchObject({ acted: false, modelFailure: 'request 0' });
  expect(after('undecided')).toEqual({ acted: false, modelFailure: undefined });
});

test('a client that ends an answer early may have acted on it', () => {
  const standings = new Standings();
  standings.note('agent', 'undecided', true, 'its client ended it');
  expect(standings.of('agent').acted).toBe(true);
  expect(standings.of('user').acted).toBe(false);
});

test('an error that no request can cause is the model’s failure', () => {
  const statuses = [400, 401, 403, 404, 408, 409, 413, 422, 425, 429, 500, 502, 529];
  expect(statuses.filter((status) => faultOf(status) === 'request')).toEqual([400, 413, 422]);
});

test.each([
  ['anthropic-messages', { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, true],
  [
    'anthropic-messages',
    { type: 'error', error: { type: 'invalid_request_error', message: 'too long' } },
    false,
  ],
  ['openai-chat', { error: { code: 502, message: 'Provider disconnected' } }, true],
  ['openai-chat', { error: { code: 'context_length_exceeded', message: 'too long' } }, false],
  ['openai-chat', { error: { code: 400, message: 'no such tool' } }, false],
  // No model answered, whatever the form of the words.
  ['openai-chat', { error: 'CUDA error' }, true],
  ['openai-chat', { detail: 'quota' }, true],
  ['openai-chat', { status: 'error', error_message: 'quota' }, true],
  ['openai-responses', { type: 'error', code: 'server_error', message: 'sorry' }, true],
  [
    'openai-responses',
    {
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'rate_limit_exceeded', message: 'x' } },
    },
    true,
  ],
  [
    'openai-responses',
    {
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'context_length_exceeded', message: 'x' } },
    },
    false,
  ],
] as const)(
  '%s: an error in a stream is the model’s own, unless it names the request: %j',
  (wire, event, isOwn) => {
    const meter = meterOf(wire, 200, 'text/event-stream');
    meter.chunk(Buffer.from(`data: ${JSON.stringify(event)}\n\n`));
    const { failure, fault } = meter.end();
    expect(failure).toBeDefined();
    expect(fault).toBe(isOwn ? 'model' : 'request');
  },
);
