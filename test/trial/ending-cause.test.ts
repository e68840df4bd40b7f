import { expect, test } from 'vitest';
import type { HarnessEnding } from '../../src/harness/runner.ts';
import { endingCause } from '../../src/trial/phases/ending-cause.ts';
import type { PhaseInput } from '../../src/trial/phases/phase.ts';
import { place, question } from '../gateway/gateway-fixture.ts';
import { chatAnswer, json, type Step } from '../gateway/test-upstream.ts';

const page: Step = (response) =>
  response.writeHead(200, { 'content-type': 'text/html' }).end('<html><title>Log in</title></html>');

/** The cause of a trial whose harness asks once for each step, and then ends. */
async function causeAfter(ending: HarnessEnding, ...steps: Step[]) {
  await using at = await place({}, ...steps);
  for (const _ of steps) await at.sandbox.ask({ headers: at.agent, body: question });
  const input = { models: { session: at.session } } as unknown as PhaseInput;
  return endingCause(ending, { wires: ['openai-chat'] }, input);
}

const guess = 'the answer was malformed. Check the base URL';

test("the server's own words come before what the CLI makes of them", async () => {
  const refusal = json(422, { detail: [{ loc: ['body', 'tools'], msg: 'at most 5 items' }] });
  expect(await causeAfter({ ended: 'model-failed', message: guess }, refusal)).toEqual({
    ...{ kind: 'model', phase: 'harness' },
    message: `big: answered 422: tools: at most 5 items\nThe harness says: ${guess}`,
  });
});

test.each(['model-failed', 'runner-broke'] as const)(
  'a page in place of an answer is the failure of the model, whatever the CLI does: %s',
  async (ended) => {
    const cause = await causeAfter({ ended, message: guess }, page);
    expect(cause).toMatchObject({ kind: 'model', message: expect.stringContaining('a web page: Log in') });
    expect(cause?.message.startsWith('big: ')).toBe(true);
  },
);

const tooLong = json(400, { error: { message: "This model's maximum context length is 4096 tokens." } });

test('a context that is too small for the first request is said as that, and no agent is blamed', async () => {
  const message = 'context window exceeded';
  expect(await causeAfter({ ended: 'agent-failed', message }, tooLong)).toMatchObject({
    kind: 'model',
    message: expect.stringMatching(/too small for the first request.*4096 tokens/),
  });
  expect(await causeAfter({ ended: 'agent-failed', message }, json(200, chatAnswer), tooLong)).toMatchObject({
    kind: 'agent',
  });
  expect(await causeAfter({ ended: 'agent-failed', message: 'it gave up' }, page)).toMatchObject({
    kind: 'agent',
  });
});
