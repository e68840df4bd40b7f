import { describe, expect, test } from 'vitest';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import type { Container } from '../../src/engine/container.ts';
import { clockWith } from '../validate/validator-bench.ts';
import { bench, sharedBench } from './shared-bench.ts';
import { openTrialBench, timeouts, validator } from './trial-bench.ts';

sharedBench();

describe.concurrent('a trial', () => {
  test('runs every verify step in order, whatever fails, with exports and folder carried over', async () => {
    const result = await bench.trial('mkdir sub', {
      verify: 'false\ncd sub\nexport A=1\ntest "$A:$PWD" = 1:/workspace/sub\n(exit 9)',
    });
    expect(result.verdict).toBe('failed');
    expect(result.verifySteps?.map(({ exitCode }) => exitCode)).toEqual([1, 0, 0, 0, 9]);
  });

  test('whose verify does not end, not even without the agent, is void, with the step that hung killed', async () => {
    const clock = clockWith(54_321);
    await using engine = await connectEngine({ instance: `test-outcome-${process.pid}`, clock });
    const containers: Container[] = [];
    await using other = await openTrialBench({
      engine: {
        ...engine,
        capabilities: engine.capabilities,
        async createContainer(spec, signal) {
          const container = await engine.createContainer(spec, signal);
          const start = async () => {
            await container.start();
            containers.push(container);
          };
          return { ...container, start };
        },
      },
    });
    const verify = 'true\n: > /tmp/hangs\nsleep 600\ntrue';
    const running = other.trial('true', { verify }, { timeouts: { ...timeouts, verify: 54_321 } });
    // The harness's own container may be gone by now.
    const looks = () =>
      containers.map(async (container) => {
        const argv = ['test', '-e', '/tmp/hangs'];
        return (await container.exec({ argv, timeoutMs: 55_000 })).exitCode === 0;
      });
    const isHanging = async () =>
      (await Promise.allSettled(looks())).some((look) => look.status === 'fulfilled' && look.value);
    await expect.poll(isHanging).toBe(true);
    clock.pass();
    const result = await running;
    expect(result).toMatchObject({
      verdict: 'void',
      cause: {
        kind: 'task',
        phase: 'verify',
        message: expect.stringMatching(/^verify was stopped after 54\.321 s; the case/),
      },
    });
    expect(result.verifySteps?.map(({ exitCode }) => exitCode)).toEqual([0, 0, 137]);
  });

  test('whose work does not end in verify, while the untouched workspace does, has failed', async () => {
    const result = await bench.trial(
      'echo sleep 600 > work.sh',
      { prepare: 'echo false > work.sh', verify: 'bash work.sh' },
      { timeouts: { ...timeouts, verify: 4_000 } },
    );
    expect(result).toMatchObject({
      verdict: 'failed',
      cause: {
        kind: 'agent',
        phase: 'verify',
        message: expect.stringMatching(/stopped after 4 s; an untouched/),
      },
      verifySteps: [{ exitCode: 137 }],
    });
  });

  test('leaves no process of verify to touch what the validator sees', async () => {
    const result = await bench.trial('true', {
      verify: 'setsid bash -c "while :; do echo spoiled > result; done" > /dev/null 2>&1 &\nsleep 0.2',
      validator: validator('#!/bin/sh\necho right > result; sleep 0.3; cat result'),
    });
    expect(result.validations).toMatchObject([{ output: { text: 'right\n' } }]);
  });

  test('does not lose its verdict when its sandbox cannot be removed', async () => {
    const { engine } = bench;
    await using other = await openTrialBench({
      engine: {
        ...engine,
        capabilities: engine.capabilities,
        async createContainer(spec, signal) {
          const container = await engine.createContainer(spec, signal);
          const remove = async () => {
            await container.remove();
            throw new OffsiteError('the engine is gone', { code: 'GONE', kind: 'infrastructure' });
          };
          return { ...container, remove };
        },
      },
    });
    const result = await other.trial('true', { verify: 'true' });
    expect(result).toMatchObject({ verdict: 'passed', cause: undefined });
  });
});
