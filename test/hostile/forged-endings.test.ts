import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ModelConfig } from '../../src/suite/model-config.ts';
import { profileOf } from '../../src/suite/plan.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';
import { chatAnswer, json, type TestUpstream, testUpstream } from '../gateway/test-upstream.ts';
import { fixtureCli } from '../trial/fixture-cli.ts';
import { scriptedModels } from '../trial/scripted-models.ts';
import { openTrialBench, type TrialBench } from '../trial/trial-bench.ts';

/** What an agent's tool call does to the CLI that runs it, to have its trial void. */

const scripts = {
  working: 'turns: [{ text: hello, repeat: true }]\n',
  overloaded: 'turns: [{ text: hello }, { repeat: true, trouble: { error: { status: 529 } } }]\n',
  outgrown: 'turns: [{ text: hello }, { repeat: true, trouble: { error: { status: 400 } } }]\n',
};

/** What a server answers from the second question on, with the status 200. */
const refusal = json(200, { error: 'the quota of this team is spent' });

let server: TestUpstream;
let bench: TrialBench;
const models: Record<string, ModelConfig> = scriptedModels(scripts);
beforeAll(async () => {
  server = await testUpstream(json(200, chatAnswer), refusal, refusal);
  models.quota = ModelConfig.parse({ wire: 'openai-chat', baseUrl: server.url, model: 'm' });
  bench = await openTrialBench({ models, runners: [fixtureCli] });
});
afterAll(async () => {
  await bench?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

function cli(model: keyof typeof scripts | 'quota', run: string): Partial<TrialSpec> {
  const profile = profileOf({ name: 'test', run });
  return { model, modelConfig: models[model], harness: 'fixture-cli', profile, verify: 'false' };
}

/** What the agent runs: a child of the CLI. */
const tool = (commands: string) => `bash <<'TOOL'\n${commands}\nTOOL\n`;
const ask = 'eval "$ASK"';
const askFurther = 'eval "$ASK_ON"';
const says = (ending: object) => `echo '${JSON.stringify({ type: 'end', ...ending })}'`;
const intoTheCli = '> /proc/$PPID/fd/1';

describe.concurrent('an agent that has acted is failed, and is graded, when its tool call', () => {
  test.for([
    ['kills the CLI', tool('kill -SEGV $PPID')],
    [
      'tells of an overloaded model in the name of the CLI, and kills it',
      tool(`${says({ modelFailed: '529 overloaded' })} ${intoTheCli}; kill -SEGV $PPID`),
    ],
  ] as const)('%s', async ([, attack]) => {
    const result = await bench.trial('', cli('working', `${ask}\n${attack}\n${says({})}`));
    expect(result).toMatchObject({ verdict: 'failed', cause: { kind: 'agent', phase: 'harness' } });
    expect(result.verifySteps).toMatchObject([{ exitCode: 1 }]);
    expect(result.models?.agent).toEqual({ acted: true, modelFailure: undefined });
  });

  test('makes requests that no model would answer', async () => {
    const refused = `${askFurther}; ${says({ modelFailed: '400' })}; exit 1`;
    const result = await bench.trial('', cli('outgrown', `${ask}; ${refused}`));
    expect(result).toMatchObject({ verdict: 'failed', cause: { kind: 'agent' } });
  });

  test('asks for a model that there is not, which the gateway itself answers with an error', async () => {
    const unknown = `eval "\${ASK/working/other}"; ${says({ modelFailed: '404' })}; exit 1`;
    const result = await bench.trial('', cli('working', `${ask}; ${unknown}`));
    expect(result).toMatchObject({ verdict: 'failed', cause: { kind: 'agent' } });
  });
});

describe.concurrent('a trial is void whose model', () => {
  test('is overloaded after the agent has acted', async () => {
    const run = `${ask}; ${askFurther}; ${says({ modelFailed: 'no answer' })}; exit 1`;
    const result = await bench.trial('', cli('overloaded', run));
    expect(result).toMatchObject({ verdict: 'void', cause: { kind: 'model' } });
    const modelFailure = expect.stringContaining('overloaded');
    expect(result.models?.agent).toMatchObject({ acted: true, modelFailure });
  });

  test('answers every question, also a short one, with an error', async () => {
    const run = `${ask}; ${askFurther}; ${says({ modelFailed: 'no answer' })}; exit 1`;
    const result = await bench.trial('', cli('quota', run));
    expect(result).toMatchObject({ verdict: 'void', cause: { kind: 'model' } });
    expect(result.models?.agent.acted).toBe(true);
  });
});
