import { expect, test } from 'vitest';
import { opencodeLines } from '../../runners/opencode/runner.ts';
import { profileOf } from '../../src/suite/plan.ts';
import { fixtureCliOf } from '../trial/fixture-cli.ts';
import { sayingHello, scriptedModels } from '../trial/scripted-models.ts';
import { openTrialBench } from '../trial/trial-bench.ts';

const { model: modelConfig } = scriptedModels({ model: sayingHello });

const common = (timestamp: number) => ({ sessionID: 'one', timestamp });
const toolLine = (tool: string, time: number) => ({
  type: 'tool_use',
  ...common(time),
  part: {
    tool,
    callID: `${tool} ${time}`,
    state: { status: 'completed', input: { command: 'ls' }, output: '', time: { start: time, end: time } },
  },
});
const lines = [1e300, -1e300, 0, Number.MAX_VALUE].flatMap((time) => [
  { type: 'text', ...common(time), part: { text: 'hello' } },
  toolLine('bash', time),
  toolLine('edit', time),
]);
const tokens = { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } };
const end = { type: 'step_finish', ...common(0), part: { reason: 'stop', tokens } };

test('all times of a trial are within it, whatever times its harness reports', async () => {
  const runners = [fixtureCliOf(opencodeLines)];
  await using bench = await openTrialBench({ models: { model: modelConfig }, runners });
  const printed = [...lines, end].map((line) => `echo '${JSON.stringify(line)}'`).join('\n');
  const profile = profileOf({ name: 'test', run: `eval "$ASK"\n${printed}` });
  const result = await bench.trial('', {
    model: 'model',
    modelConfig,
    harness: 'fixture-cli',
    profile,
    verify: 'true',
  });
  expect(result).toMatchObject({ verdict: 'passed', harness: { ended: 'exited', exitCode: 0 } });
  const { trajectory = [], events = [], startedAt, finishedAt } = result;
  const times = [
    ...trajectory.flatMap(({ startedAtMillis, finishedAtMillis }) => [startedAtMillis, finishedAtMillis]),
    ...events.flatMap((event) => (event.kind === 'tool' ? [event.at, event.finishedAt] : [event.at])),
  ];
  // The prompt, and of each time: a message, two times of a command, two of a tool.
  expect(times).toHaveLength(1 + 4 * 5);
  for (const time of times) {
    expect(time).toBeGreaterThanOrEqual(startedAt);
    expect(time).toBeLessThanOrEqual(finishedAt);
  }
});
