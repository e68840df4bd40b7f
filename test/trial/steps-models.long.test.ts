import { expect, test } from 'vitest';
import { meanOf, scriptStep } from './script-tests.ts';
import { scriptedModels } from './scripted-models.ts';
import { openTrialBench } from './trial-bench.ts';

const ask =
  'curl -sS -o /dev/null -w "%{http_code}\\n" --max-time 60 -H "authorization: Bearer $OPENAI_API_KEY" ' +
  '-H "content-type: application/json" -d \'{"model": "one", "messages": [{"role": "user", "content": "hi"}]}\' ' +
  '"$OPENAI_BASE_URL/chat/completions"';

/** Its tests run what the agent left, as tests often do. */
const step = (name: string) => scriptStep(name, 'bash work; echo 1 > /logs/verifier/reward.txt');

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
    steps: meanOf([step('first'), step('second')]),
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
