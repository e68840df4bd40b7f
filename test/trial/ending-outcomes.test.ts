import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openBudget } from '../../src/gateway/budget.ts';
import type { BudgetAccount, ModelAccount } from '../../src/gateway/gateway.ts';
import type { Runner } from '../../src/harness/runner.ts';
import type { HarnessEnding } from '../../src/record/harness.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import type { TrialSandbox } from '../../src/trial/phase.ts';
import { agentWhoLeft, endingCause } from '../../src/trial/run/ending-cause.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';
import { place } from '../gateway/gateway-fixture.ts';
import { chatAnswer, json, type Step } from '../gateway/test-upstream.ts';
import { fixtureCli } from './fixture-cli.ts';
import { specOf } from './trial-bench.ts';

const [usage, judged] = (['agent', 'judge'] as const).map((role) => ({
  role,
  model: 'big',
  answeredBy: undefined,
  requests: 1,
  usage: {},
  pricesOf: undefined,
}));
const unasked: ModelAccount = {
  exchanges: [],
  connections: [],
  usage: [],
  modelMs: 0,
  failure: undefined,
  agent: { acted: false, modelFailure: undefined },
};
const asked: ModelAccount = { ...unasked, usage: usage ? [usage] : [] };
const acted = { acted: true, modelFailure: undefined };
const failure = { modelFailure: 'down', lastFailure: 'down' };

/** What the gateway saw of an agent's model. */
const accounts: Readonly<Record<string, ModelAccount>> = {
  unasked,
  'only a judge was asked': { ...unasked, usage: judged ? [judged] : [] },
  unanswered: asked,
  answered: { ...asked, agent: acted },
  'answered, then refused': { ...asked, agent: { ...acted, lastFailure: 'no' } },
  'answered, then failed': { ...asked, agent: { ...acted, ...failure } },
  refused: { ...asked, agent: { ...unasked.agent, lastFailure: 'no' } },
  failed: { ...asked, agent: { ...unasked.agent, ...failure } },
};

const message = 'it says so';
const endings: readonly HarnessEnding[] = [
  { ended: 'exited', exitCode: 0 },
  { ended: 'exited', exitCode: 1 },
  { ended: 'agent-failed', message },
  { ended: 'model-failed', message },
  { ended: 'runner-broke', message },
  { ended: 'stopped', message },
  { ended: 'timed-out', afterMs: 2000 },
  { ended: 'out-of-disk' },
  { ended: 'out-of-memory' },
];

interface Place {
  runner?: Partial<Runner>;
  network?: TrialSpec['sandbox']['network'];
  /** Bytes that a named host sent. */
  received?: number;
  spent?: boolean;
  withoutModel?: boolean;
}

const places: Readonly<Record<string, Place>> = {
  'a CLI that tells how its model ended': {},
  'a CLI that does not tell it': { runner: { reportsModelFailure: false } },
  'any program': { runner: { wires: [] } },
  'an open network': { network: 'open' },
  'a host that answered': { network: 'allowlist', received: 1 },
  'a host that did not': { network: 'allowlist', received: 0 },
  'a model that is not ours': { withoutModel: true },
  'a budget that is spent': { spent: true },
};

const modelConfig = ModelConfig.parse({ scripted: 'none' });

function trialOf(account: ModelAccount, { network = 'none', received, spent, withoutModel }: Place) {
  const connection = { host: 'h', port: 443, startedAt: 0, finishedAt: 1, sentBytes: 1, failure: undefined };
  const connections = received === undefined ? [] : [{ ...connection, receivedBytes: received }];
  const overBudget = spent ? AbortSignal.abort() : new AbortController().signal;
  const session = { account: async () => ({ ...account, connections }), overBudget };
  // A recording is not asked whether it answers.
  const replay = { batch: 'batch', live: 'never' } as unknown as TrialSpec['replay'];
  const change = { harness: 'fixture-cli', replay, ...(!withoutModel && { modelConfig }) };
  const parts = { runners: [fixtureCli] };
  const sandbox = { models: { session }, parts } as unknown as TrialSandbox;
  return { spec: specOf('', change, { network }), sandbox };
}

async function causeOf(account: ModelAccount, ending: HarnessEnding, at: Place = {}) {
  const runner = { ...fixtureCli, ...at.runner };
  const { spec, sandbox } = trialOf(account, at);
  return endingCause(runner, { ending, lastOutput: 'its last words' }, spec, sandbox);
}

test('every ending has the cause that was thought out, in ending-outcomes.txt', async () => {
  let table = '';
  for (const [name, at] of Object.entries(places)) {
    const columns = endings.map((each) => (each.ended === 'exited' ? `exited ${each.exitCode}` : each.ended));
    table += `${name}\n | ${columns.join(' | ')}\n`;
    for (const [seen, account] of Object.entries(accounts)) {
      const causes = await Promise.all(endings.map((ending) => causeOf(account, ending, at)));
      table += `${[seen, ...causes.map((cause) => cause?.kind ?? '-')].join(' | ')}\n`;
    }
    table += '\n';
  }
  expect(table).toBe(readFileSync(join(import.meta.dirname, 'ending-outcomes.txt'), 'utf8'));
});

test('no harness ends a trial as void whose model answered and did not fail', async () => {
  for (const [name, at] of Object.entries(places))
    for (const seen of ['answered', 'answered, then refused'])
      for (const ending of endings) {
        const cause = await causeOf(accounts[seen] as ModelAccount, ending, at);
        expect([undefined, 'agent'], `${name}, ${seen}, ${ending.ended}`).toContain(cause?.kind);
      }
});

test('no failure of a model is the fault of an agent that had no answer', async () => {
  const sealed = Object.entries(places).filter(
    ([, { runner, network, withoutModel, received }]) =>
      !runner?.wires && network !== 'open' && !withoutModel && !received,
  );
  expect(sealed.length).toBeGreaterThan(3);
  for (const [name, at] of sealed)
    for (const seen of ['refused', 'failed'])
      for (const ending of endings) {
        const cause = await causeOf(accounts[seen] as ModelAccount, ending, at);
        expect(['model', 'harness'], `${name}, ${seen}, ${ending.ended}`).toContain(cause?.kind);
      }
});

test.each<[HarnessEnding, string]>([
  [{ ended: 'exited', exitCode: 3 }, 'the harness exited with 3'],
  [{ ended: 'timed-out', afterMs: 1500 }, 'the harness was stopped after 1.5 s'],
  [{ ended: 'out-of-disk' }, 'the harness was stopped because it wrote more than the sandbox allows'],
  [{ ended: 'out-of-memory' }, 'the harness was killed because it used more memory than the sandbox has'],
  [{ ended: 'stopped', message }, message],
])('it is told how the harness ended: %j', async (ending, problem) => {
  const open = { network: 'open' } as const;
  const gone = await causeOf(accounts.answered as ModelAccount, ending, open);
  expect(gone).toEqual(
    ending.ended === 'exited' ? undefined : { kind: 'agent', phase: 'harness', message: problem },
  );
  const before = await causeOf(unasked, ending);
  const isUnknown = ending.ended === 'stopped';
  expect(before?.message).toBe(
    isUnknown
      ? `${problem}; it is not known whose fault that is: the model had not answered when the harness ended`
      : `fixture-cli ended with an error before it asked its model anything: ${problem}`,
  );
  expect(before?.output).toBe(isUnknown ? undefined : 'its last words');
});

test('it is told how far the harness came with its model', async () => {
  expect(await causeOf(asked, { ended: 'out-of-disk' })).toMatchObject({
    kind: 'harness',
    message: expect.stringContaining('before its model answered: '),
  });
  expect(await causeOf(asked, { ended: 'timed-out', afterMs: 2000 })).toEqual({
    kind: 'model',
    phase: 'harness',
    message: 'the model did not answer: the harness was stopped after 2 s',
  });
});

test('what another role met, or what came after an answer, is not told of the first request', async () => {
  const words = "This model's maximum context length is 4096 tokens.";
  const crashed = { ended: 'runner-broke', message } as const;
  const later = { ...asked, agent: { ...acted, modelFailure: words, lastFailure: words } };
  expect((await causeOf(later, crashed))?.message).not.toContain('first request');
  const exchanges = [
    { role: 'agent', status: 503 },
    { role: 'judge', status: 401 },
  ] as ModelAccount['exchanges'];
  const down = { ...asked, exchanges, agent: { ...acted, ...failure } };
  expect((await causeOf(down, crashed))?.message).not.toContain('Check the key');
});

test('whose work is graded: an agent that was there, one that was not, one that nobody saw', async () => {
  const left = (account: ModelAccount, at: Place, more: object = {}) => {
    const { spec, sandbox } = trialOf(account, at);
    return agentWhoLeft(spec, { ...sandbox, ...more });
  };
  expect(await left(accounts.answered as ModelAccount, {})).toBe('acted');
  expect(await left(asked, {})).toBe('absent');
  expect(await left(asked, { network: 'open' })).toBe('unseen');
  // What a later grading finds was left by somebody.
  expect(await left(asked, {}, { restored: {} })).toBe('acted');
  expect(await left(asked, {}, { parts: { runners: [] } })).toBe('acted');
});

const crash: HarnessEnding = { ended: 'runner-broke', message: 'it crashed' };
const refusal = json(400, { error: { message: 'no such tool' } });

/** The cause of a crash after an answer and a refusal, where the model goes on with these steps. */
async function causeAfterProbe(next: Step[], more: { batch?: BudgetAccount; signal?: AbortSignal } = {}) {
  await using at = await place({}, json(200, chatAnswer), refusal, ...next);
  const body = { model: 'big', messages: [{ role: 'user', content: 'hello' }] };
  for (const _ of [1, 2]) await at.sandbox.ask({ headers: at.agent, body });
  const parts = {
    gateway: at.gateway,
    clock: systemClock,
    blobs: { put: async () => ({ sha256: '' }) },
    budgets: { trial: {}, batch: more.batch },
  };
  const spec = specOf('', { harness: 'fixture-cli', model: 'big', modelConfig });
  const { signal = new AbortController().signal } = more;
  const sandbox = { parts, signal, models: { session: at.session } } as unknown as TrialSandbox;
  const cause = await endingCause(fixtureCli, { ending: crash, lastOutput: undefined }, spec, sandbox);
  return { cause, requests: at.upstream.received.length };
}

test('a model that refused the last request is asked a short question, and to blame only if it refuses that', async () => {
  const answers = await causeAfterProbe([json(200, chatAnswer)]);
  expect(answers).toEqual({ cause: { kind: 'agent', phase: 'harness', message: 'it crashed' }, requests: 3 });
  const silent = await causeAfterProbe([refusal]);
  expect(silent).toMatchObject({ cause: { kind: 'model' }, requests: 3 });
  expect(silent.cause?.message).toContain('no such tool');
});

test('where that question may not be asked, no model is to blame', async () => {
  const batch = openBudget({ requests: 1 }, 0);
  batch.spent.requests = 1;
  const spent = await causeAfterProbe([refusal], { batch });
  expect(spent).toMatchObject({ cause: { kind: 'agent' }, requests: 2 });
});

test('a run that is stopped meanwhile is told no cause', async () => {
  const signal = AbortSignal.abort(new Error('stopped'));
  await expect(causeAfterProbe([json(200, chatAnswer)], { signal })).rejects.toThrow('stopped');
});
