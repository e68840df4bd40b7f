import { describe, expect, test } from 'vitest';
import { profileOf } from '../../src/suite/plan.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';
import { fixtureCli } from './fixture-cli.ts';
import { sayingHello, scriptedModels } from './scripted-models.ts';
import { bench, sharedBench } from './shared-bench.ts';

const { model: modelConfig } = scriptedModels({ model: sayingHello });
sharedBench({ models: { model: modelConfig }, runners: [fixtureCli] });

function cli(run: string, change: Partial<TrialSpec> = {}): Partial<TrialSpec> {
  const profile = profileOf({ name: 'test', run });
  return { model: 'model', modelConfig, harness: 'fixture-cli', profile, verify: 'false', ...change };
}

const ends = (failed?: string) => `echo '${JSON.stringify({ type: 'end', failed })}'`;

describe.concurrent('a harness that ends with an error before it asked its model anything', () => {
  test.for([
    ['exits without a last word', 'echo unknown option --fast >&2; exit 2'],
    ['asks for another model', `echo unknown option --fast; eval "\${ASK/model/other}"; exit 1`],
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
});

describe.concurrent('an agent that fails', () => {
  test.for([
    ['gives up after it asked', `eval "$ASK"; ${ends('no idea')}; exit 1`],
    ['does nothing, and ends as it should', ends()],
  ] as const)('is failed when it %s', async ([, run]) => {
    const result = await bench.trial('', cli(run));
    expect(result.verdict).toBe('failed');
    expect(result.cause?.kind ?? 'agent').toBe('agent');
  });
});
