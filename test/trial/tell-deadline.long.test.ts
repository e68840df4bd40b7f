import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBudget } from '../../src/gateway/budget.ts';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import type { ModelConfig } from '../../src/suite/model-config.ts';
import { profileOf } from '../../src/suite/plan.ts';
import { profileVersion } from '../../src/suite/planned-variant.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';
import { scriptedModels } from './scripted-models.ts';
import { openTrialBench, type TrialBench, timeouts } from './trial-bench.ts';

const timeout = 120_000;
const scripts = {
  worker: `
turns:
  - run: echo "$OFFSITE_TIME_LIMIT_SECONDS $OFFSITE_TOKEN_BUDGET $OFFSITE_REQUEST_BUDGET"
    usage: { input: 1000, output: 100 }
  - text: Done.
`,
  asking: `
turns:
  - when: { user: tea }
    text: Which tea?
    usage: { input: 1000, output: 100 }
  - when: { user: green }
    run: echo "$OFFSITE_TOKEN_BUDGET"
  - text: Here it is.
`,
  person: `
turns:
  - when: { user: "Which tea" }
    text: '{"thought": "fine", "action": "say", "text": "green, please"}'
    usage: none
  - text: '{"thought": "good", "action": "satisfied", "text": "I have it"}'
    usage: none
`,
};

let bench: TrialBench;
const models: Record<string, ModelConfig> = scriptedModels(scripts, () => ({ record: 'full' }));
beforeAll(async () => {
  const batch = openBudget({ tokens: 9_000, requests: 1_000 }, Date.now());
  batch.spent.tokens = 3_000;
  bench = await openTrialBench({ models, budgets: { trial: { tokens: 50_000, requests: 20 }, batch } });
}, timeout);
afterAll(() => bench?.[Symbol.asyncDispose]());

const withTimeLeft = profileOf({ name: 'told', tellDeadline: true });
const plain = profileOf({ name: 'told' });

function trial(more: Partial<TrialSpec>) {
  const model = more.model ?? 'worker';
  return bench.trial('', { harness: 'bash', model, modelConfig: models[model], verify: 'true', ...more });
}

/** The bodies of what the agent's model was asked. */
function requestsOf(result: TrialRecord): string[] {
  const bodies = result.models?.exchanges.filter(({ role }) => role === 'agent') ?? [];
  return bodies.map(({ requestBody }) => bench.blobs.read(requestBody ?? '').toString());
}

describe('a profile with tellDeadline', () => {
  test('tells bash what is left, in its environment and with each result', { timeout }, async () => {
    const result = await trial({ profile: withTimeLeft });
    const [command] = result.trajectory ?? [];
    const [seconds, tokens, requests] = (command?.output ?? '').trim().split(' ').map(Number);
    expect(seconds).toBeGreaterThan(timeouts.harness / 1000 - 10);
    // The batch has less left than the trial may use, but more requests.
    expect([tokens, requests]).toEqual([6_000, 20]);
    const [first = '', second = ''] = requestsOf(result);
    expect(first).toMatch(/\[left: \d+ s, 6000 tokens, 20 requests\]/);
    expect(second).toMatch(/\[exit code 0\]\\n\[left: \d+ s, 4900 tokens, 19 requests\]/);
    expect(result.subject).toMatchObject({
      tellDeadline: true,
      profileVersion: profileVersion(withTimeLeft),
    });
    // The prompt in the record is the one of the suite.
    expect(result.events?.find(({ kind }) => kind === 'user')).toMatchObject({
      text: expect.not.stringContaining('[left:'),
    });
  });

  test('tells in each turn of a conversation what is left then', { timeout }, async () => {
    const user = { goal: 'tea', prompt: '', model: 'person', turns: 5 };
    const result = await trial({ profile: withTimeLeft, model: 'asking', prompt: 'I want tea.', user });
    const left = Number(result.trajectory?.[0]?.output);
    expect(left).toBeGreaterThan(0);
    const sums = requestsOf(result).map((body) => body.match(/left: \d+ s, (\d+) tokens/g)?.length);
    expect(sums).toEqual([1, 2, 3]);
  });

  test('tells a script when it will be ended, by the clock and in seconds', { timeout }, async () => {
    const before = Date.now() / 1000;
    const run = 'echo "$OFFSITE_DEADLINE $OFFSITE_TIME_LIMIT_SECONDS"; env';
    const result = await bench.trial(run, { profile: profileOf({ ...withTimeLeft, run }), verify: 'true' });
    const text = result.trajectory?.[0]?.output ?? '';
    // It has no model.
    expect(text).not.toContain('OFFSITE_TOKEN_BUDGET');
    const [deadline = 0, seconds] = (text.split('\n')[0] ?? '').split(' ').map(Number);
    expect(seconds).toBeGreaterThanOrEqual(timeouts.harness / 1000 - 1);
    expect(seconds).toBeLessThanOrEqual(timeouts.harness / 1000);
    expect(deadline - before).toBeGreaterThanOrEqual(timeouts.harness / 1000 - 2);
  });

  test('changes the version of the profile', () => {
    expect(profileVersion(withTimeLeft)).not.toBe(profileVersion(plain));
  });
});

test('without it, nothing is told', { timeout }, async () => {
  const result = await trial({ profile: plain });
  expect(result.trajectory?.[0]?.output).toBe('  \n');
  const bodies = requestsOf(result);
  expect(bodies.length).toBe(2);
  expect(bodies.join()).not.toContain('[left:');
  expect(result.subject).not.toHaveProperty('tellDeadline');
});
