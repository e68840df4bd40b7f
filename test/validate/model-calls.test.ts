import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { ModelCalls } from '../../src/validate/model-calls.ts';

test('a question that is canceled gets a reply, and is no failure of the grading', async () => {
  const trial = new AbortController();
  using calls = new ModelCalls({
    clock: systemClock,
    timeoutMs: 60_000,
    signal: trial.signal,
    judge: (_request, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  });
  const request = { rubric: 'Is it good?', material: 'work' };
  const reply = calls.fulfill({ kind: 'ask', id: 1, validation: 'good', method: 'judge', request });
  trial.abort(new Error('SIGTERM'));
  expect(await reply).toEqual({ id: 1, error: 'the trial was canceled' });
  await calls.settled();
  expect(calls.failure).toBeUndefined();
});
