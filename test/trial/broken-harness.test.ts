import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openBudget } from '../../src/gateway/budget.ts';
import { profileOf } from '../../src/suite/plan.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';
import { fixtureCli } from './fixture-cli.ts';
import { sayingHello, scriptedModels } from './scripted-models.ts';
import { openTrialBench, type TrialBench } from './trial-bench.ts';

let bench: TrialBench;
const { model: modelConfig } = scriptedModels({ model: sayingHello });
beforeAll(async () => {
  bench = await openTrialBench({ models: { model: modelConfig }, runners: [fixtureCli] });
});
afterAll(() => bench?.[Symbol.asyncDispose]());

function cli(run: string, change: Partial<TrialSpec> = {}): Partial<TrialSpec> {
  const profile = profileOf({ name: 'test', run });
  return { model: 'model', modelConfig, harness: 'fixture-cli', profile, verify: 'false', ...change };
}

const ends = (failed?: string) => `echo '${JSON.stringify({ type: 'end', failed })}'`;

describe.concurrent('a harness that ends with an error before it asked its model anything', () => {
  test.for([
    ['exits without a last word', 'echo unknown option --fast >&2; exit 2'],
    ['says that it gave up', `echo unknown option --fast >&2; ${ends('bad option')}; exit 1`],
    ['says that all is well, and exits with an error', `echo unknown option --fast; ${ends()}; exit 1`],
    ['is ended by a signal', 'echo unknown option --fast >&2; kill -TERM $$'],
    ['asks for another model', `echo unknown option --fast; eval "\${ASK/model/other}"; exit 1`],
    ['asks another path', `echo unknown option --fast; eval "$ASK/elsewhere"; exit 1`],
  ] as const)('is void when it %s, and its last output is told', async ([, run]) => {
    const result = await bench.trial('', cli(run));
    expect(result).toMatchObject({
      verdict: 'void',
      cause: {
        kind: 'harness',
        phase: 'harness',
        message: expect.stringContaining('before it asked its model anything'),
        output: expect.stringContaining('unknown option --fast'),
      },
    });
    expect(result.verifySteps).toBeUndefined();
    expect(result.models?.usage).toEqual([]);
  });

  test('shows no more than the end of what it printed', async () => {
    const result = await bench.trial('', cli('seq 1 100000; seq 1 100000 >&2; echo the end >&2; exit 1'));
    expect(result.cause?.kind).toBe('harness');
    expect(result.cause?.output).toMatch(/the end$/);
    expect(result.cause?.output?.length).toBeLessThan(5_000);
  });

  test('is void when its time is up', async () => {
    const timeouts = {
      install: 60_000,
      build: 60_000,
      prepare: 60_000,
      harness: 1_000,
      verify: 60_000,
      validator: 60_000,
    };
    const result = await bench.trial('', cli('sleep 60'), { timeouts });
    expect(result).toMatchObject({ verdict: 'void', cause: { kind: 'harness' } });
  });
});

describe.concurrent('an agent that fails', () => {
  test.for([
    ['gives up after it asked', `eval "$ASK"; ${ends('no idea')}; exit 1`],
    ['exits with an error after it asked', `eval "$ASK"; ${ends()}; exit 1`],
    ['kills its harness after it asked', 'eval "$ASK"; kill -TERM $$'],
    ['does nothing, and ends as it should', ends()],
  ] as const)('is failed when it %s', async ([, run]) => {
    const result = await bench.trial('', cli(run));
    expect(result.verdict).toBe('failed');
    expect(result.cause?.kind ?? 'agent').toBe('agent');
  });

  test('cannot be told from a harness that fails where it may ask any model, and is failed', async () => {
    const result = await bench.trial('', cli(`${ends('bad option')}; exit 1`), { network: 'open' });
    expect(result).toMatchObject({ verdict: 'failed', cause: { kind: 'agent' } });
  });

  test('is failed when it is a program of the command harness, which needs no model', async () => {
    const result = await bench.trial('exit 1', cli('exit 1', { harness: 'command' }));
    expect(result.verdict).toBe('failed');
  });
});

test('a budget that is spent before a harness asks anything is no trouble of the harness', async () => {
  const batch = openBudget({ requests: 1 }, 0);
  batch.spent.requests = 1;
  await using spent = await openTrialBench({
    models: { model: modelConfig },
    runners: [fixtureCli],
    budgets: { trial: {}, batch },
  });
  const result = await spent.trial('', cli('eval "$ASK"; exit 1'));
  expect(result.cause?.kind).not.toBe('harness');
});
