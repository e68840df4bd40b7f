import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openBudget } from '../../src/gateway/budget.ts';
import { place, question, sessionRequest } from './gateway-fixture.ts';
import { sandboxOf } from './sandbox.ts';
import { chatAnswer, events, json } from './test-upstream.ts';

const hello = { messages: [{ from: 'user', text: 'hello' }] } as const;
const { signal } = new AbortController();
const good = json(200, chatAnswer);
const prices = { date: '2026-01-01', input: 1, output: 10 };

test.for([
  [
    'tokens',
    { tokens: 200 },
    "the trial's budget of 200 tokens (budgets.trial.tokens) is spent: 240 were used",
  ],
  ['requests', { requests: 2 }, "the trial's budget of 2 requests (budgets.trial.requests) is spent"],
  ['USD', { usd: 0.0005 }, "the trial's budget of 0.0005 USD (budgets.trial.usd) is spent: 0.0006 were used"],
] as const)(
  'a budget of %s refuses the request after the one that spent it, and ends the trial',
  async ([, budget, message]) => {
    await using at = await place({ model: { prices }, session: { budget } }, good);
    const ask = () => at.sandbox.ask({ headers: at.agent, body: question });
    expect([(await ask()).status, (await ask()).status]).toEqual([200, 200]);
    expect(at.session.overBudget.aborted).toBe(false);
    expect(await ask()).toMatchObject({
      status: 400,
      body: { error: { type: 'invalid_request_error', code: 'budget_exceeded', message } },
    });
    expect(at.session.overBudget.reason).toMatchObject({ code: 'BUDGET_SPENT', kind: 'input', message });
    expect(at.upstream.received).toHaveLength(2);
    const account = await at.session.account();
    expect(account.failure).toBeUndefined();
    expect(account.usage).toMatchObject([{ requests: 2 }]);
  },
);

test('requests that are sent at once cannot slip past a budget of requests', async () => {
  await using at = await place({ session: { budget: { requests: 3 } } }, good);
  const all = await Promise.all(
    Array.from({ length: 20 }, () => at.sandbox.ask({ headers: at.agent, body: question })),
  );
  expect(all.filter(({ status }) => status === 200)).toHaveLength(3);
  expect(at.upstream.received).toHaveLength(3);
});

test('requests that wait for their turn are refused once the budget is spent', async () => {
  await using at = await place({ model: { maxParallel: 1 }, session: { budget: { tokens: 1 } } }, good);
  const all = await Promise.all(
    Array.from({ length: 10 }, () => at.sandbox.ask({ headers: at.agent, body: question })),
  );
  expect(all.filter(({ status }) => status === 200)).toHaveLength(1);
  expect(at.upstream.received).toHaveLength(1);
});

test("a batch's budget holds over all its trials", async () => {
  const batchBudget = openBudget({ tokens: 100 }, 0);
  await using at = await place({ session: { batchBudget } }, good);
  await using other = at.gateway.open(sessionRequest(undefined, { batchBudget }));
  await using sandbox = sandboxOf(other);
  await at.sandbox.ask({ headers: at.agent, body: question });
  await at.session.account();
  const answer = await sandbox.ask({
    headers: { authorization: `Bearer ${other.token('agent')}` },
    body: question,
  });
  expect(answer.body.error.message).toBe(
    "the batch's budget of 100 tokens (budgets.batch.tokens) is spent: 120 were used",
  );
  expect(other.overBudget.aborted).toBe(true);
  expect(at.session.overBudget.aborted).toBe(false);
  expect(batchBudget.spent).toMatchObject({ tokens: 120, requests: 1 });
});

test('judges keep their budget, whatever the agent spends of the trial’s and the batch’s', async () => {
  const limits = { tokens: 100, requests: 1, time: 3_600_000 };
  const batchBudget = openBudget({ tokens: 100, requests: 1 }, 0);
  const models = { agent: ['big'], user: ['big'], judge: ['big'] };
  await using at = await place({ session: { budget: limits, batchBudget, models } }, good);
  await at.sandbox.ask({ headers: at.agent, body: question });
  await at.session.account();
  expect(await at.sandbox.ask({ headers: at.agent, body: question })).toMatchObject({ status: 400 });
  await expect(at.session.chat('user', hello, signal)).rejects.toMatchObject({ code: 'BUDGET_EXCEEDED' });
  at.clock.advance(limits.time);
  expect(await at.session.chat('judge', hello, signal)).toMatchObject({ text: 'hi' });
  expect(batchBudget.spent).toMatchObject({ tokens: 120, requests: 1 });
});

test('judges have a separate budget, as large as the trial’s or as configured', async () => {
  const models = { agent: ['big'], judge: ['big'] };
  await using at = await place({ session: { budget: {}, judgeBudget: { requests: 1 }, models } }, good);
  await at.session.chat('judge', hello, signal);
  await expect(at.session.chat('judge', hello, signal)).rejects.toMatchObject({
    code: 'BUDGET_EXCEEDED',
    message: "the judges' budget of 1 requests (budgets.judges.requests) is spent",
  });
  expect(at.session.overBudget.aborted).toBe(false);
  expect(await at.sandbox.ask({ headers: at.agent, body: question })).toMatchObject({ status: 200 });
  await using same = at.gateway.open(sessionRequest(undefined, { budget: { requests: 1 }, models }));
  await same.chat('judge', hello, signal);
  await expect(same.chat('judge', hello, signal)).rejects.toMatchObject({ code: 'BUDGET_EXCEEDED' });
});

test('judges of a batch have a second account with its limits, except for time', async () => {
  const batchBudget = openBudget({ tokens: 100, time: 1 }, 0);
  const models = { judge: ['big'] };
  await using at = await place({ session: { batchBudget, models } }, good);
  await at.session.chat('judge', hello, signal);
  await expect(at.session.chat('judge', hello, signal)).rejects.toMatchObject({
    message: "the budget of the batch's judges of 100 tokens (budgets.batch.tokens) is spent: 120 were used",
  });
});

test('a budget of time ends the trial when it is over, by the clock', async () => {
  await using at = await place({ session: { budget: { time: 7_200_000 } } }, good);
  expect(await at.sandbox.ask({ headers: at.agent, body: question })).toMatchObject({ status: 200 });
  const over = new Promise((resolve) => at.session.overBudget.addEventListener('abort', resolve));
  at.clock.advance(7_200_000);
  await over;
  expect(at.session.overBudget.reason).toMatchObject({ code: 'BUDGET_SPENT' });
  expect(await at.sandbox.ask({ headers: at.agent, body: question })).toMatchObject({ status: 400 });
});

test('a budget of a thousand hours does not end at once, by a real clock', async () => {
  await using at = await place(
    { session: { budget: { time: 3_600_000_000 } }, gateway: { clock: systemClock } },
    good,
  );
  expect(await at.sandbox.ask({ headers: at.agent, body: question })).toMatchObject({ status: 200 });
  expect(at.session.overBudget.aborted).toBe(false);
});

test('answers that hide their usage still use up a budget of tokens', async () => {
  const words = Array.from({ length: 50 }, () => 'data: {"choices":[{"delta":{"content":"x"}}]}\n\n').join(
    '',
  );
  await using at = await place({ session: { budget: { tokens: 60 } } }, events(words));
  const ask = () => at.sandbox.ask({ headers: at.agent, body: { ...question, stream: true } });
  expect(await ask()).toMatchObject({ status: 200 });
  expect(await ask()).toMatchObject({ status: 400, body: { error: { code: 'budget_exceeded' } } });
  // What was guessed for the budget is not told as measured.
  expect((await at.session.account()).usage).toMatchObject([{ usage: {} }]);
});

test('errors cost nothing', async () => {
  await using at = await place(
    { session: { budget: { tokens: 10 } } },
    json(400, { error: { message: 'no' } }),
  );
  for (let count = 0; count < 3; count += 1) await at.sandbox.ask({ headers: at.agent, body: question });
  expect(at.upstream.received).toHaveLength(3);
});
