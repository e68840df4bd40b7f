import { expect, test } from 'vitest';
import type { TrialStep } from '../../src/trial/spec.ts';
import { scriptedModels } from './scripted-models.ts';
import { openTrialBench } from './trial-bench.ts';

const ask =
  'curl -sS -o /dev/null -w "%{http_code}\\n" --max-time 60 -H "authorization: Bearer $OPENAI_API_KEY" ' +
  '-H "content-type: application/json" -d \'{"model": "one", "messages": [{"role": "user", "content": "hi"}]}\' ' +
  '"$OPENAI_BASE_URL/chat/completions"';

/** Its tests run what the agent left, as tests often do. */
function step(name: string): TrialStep {
  const script = 'bash work; echo 1 > /logs/verifier/reward.txt\n';
  return {
    name,
    prompt: name,
    variables: {},
    files: [],
    emptied: [],
    artifacts: [],
    agent: {},
    tests: {
      files: [{ path: '/tests/test.sh', content: Buffer.from(script), mode: 0o644 }],
      emptied: ['/tests', '/logs/verifier'],
      command: ['bash', '/tests/test.sh'],
      env: {},
      timeoutMs: 60_000,
      thresholds: { byName: {} },
      reading: {
        kind: 'reward-files',
        json: '/logs/verifier/reward.json',
        text: '/logs/verifier/reward.txt',
      },
    },
  };
}

const models = scriptedModels({
  one: 'turns: [{ text: Hello., repeat: true, usage: { input: 10, output: 5 } }]\n',
});

test('the harness of each step has the model, and what the tests of a step run has none', async () => {
  await using bench = await openTrialBench({ models });
  const run = [
    ask,
    `printf '%s\\n' "OPENAI_BASE_URL=$OPENAI_BASE_URL OPENAI_API_KEY=$OPENAI_API_KEY" > work`,
    `cat >> work <<'END'\n${ask}\nEND`,
  ].join('\n');
  const result = await bench.trial(run, {
    model: 'one',
    modelConfig: models.one,
    steps: {
      list: [step('first'), step('second')],
      strategy: 'mean',
      thresholds: { default: 1, byName: {} },
    },
  });
  expect(result.verdict).toBe('passed');
  expect(result.derivedTrajectory ?? []).toEqual([]);
  const asked = result.trajectory?.filter(({ command }) => command.startsWith('curl'));
  expect(asked?.map(({ output }) => output)).toEqual(['200\n', '200\n']);
  // While no harness runs, then after the last one.
  expect(result.validations?.map(({ logs }) => logs?.[0]?.value?.text)).toEqual(['503\n', '400\n']);
  // Both steps together.
  expect(result.models?.usage).toMatchObject([{ role: 'agent', requests: 2 }]);
});
