import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { Context, contextParts } from '../../../src/api/context.ts';
import { hostCertificates } from '../../../src/api/host-certificates.ts';
import { shellCall } from '../../../src/gateway/scripted/turns.ts';
import { commandsOf } from '../../../src/record/timeline.ts';
import { type CheckedModel, checkModel } from '../../../src/setup/models/check-model.ts';
import { ModelConfig, type Wire, wires } from '../../../src/suite/model-config.ts';
import { profileOf } from '../../../src/suite/plan.ts';
import { openPlace } from '../../cli/place.ts';
import { installPatience, turnPatience } from '../../runners/runner-bench.ts';
import { openTrialBench, timeouts } from '../../trial/trial-bench.ts';
import { clients } from '../translation/clients.ts';
import { placeOf } from '../translation/translated-place.ts';
import {
  type AimockAnswer,
  type AimockQuestion,
  aimock,
  byPython,
  liteLlm,
  llamaCpp,
  type RealServer,
} from './serve.ts';

/** The wires that both servers speak. */
const spoken = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const;
const stack = new AsyncDisposableStack();
const servers: Partial<Record<'llama.cpp' | 'LiteLLM', RealServer>> = {};

byPython.describe('a server of models', () => {
  beforeAll(async () => {
    const llama = stack.use(await llamaCpp());
    servers['llama.cpp'] = llama;
    servers.LiteLLM = stack.use(await liteLlm({ baseUrl: llama.baseUrl, model: 'tiny', key: 'none' }));
  }, installPatience);
  afterAll(() => stack.disposeAsync());

  const modelOf = (name: 'llama.cpp' | 'LiteLLM', wire: Wire) => {
    const { baseUrl } = servers[name] ?? expect.fail(`${name} does not run`);
    return { wire, baseUrl, model: name === 'LiteLLM' ? 'proxied' : 'tiny' };
  };

  describe.each(['llama.cpp', 'LiteLLM'] as const)('%s', (name) => {
    describe.each(spoken)('over %s', (wire) => {
      test.each(wires.filter((client) => client !== wire))('is read by clients of %s', async (client) => {
        await using place = await placeOf(modelOf(name, wire));
        for (const streamed of [true, false]) {
          const heard = await clients[client].ask(place, [{ user: 'Hello' }], streamed);
          // Nobody knows what random weights say, but not that they end in one of these ways.
          expect(heard.stop).toMatch(
            /^(stop|length|end_turn|max_tokens|completed|max_output_tokens|MAX_TOKENS|STOP)$/,
          );
          // If its first piece is half a character, llama.cpp leaves out where it says the input.
          const { exchanges } = await place.session.account();
          expect(heard.input ?? 0).toBe(exchanges.at(-1)?.usage?.inputTokens ?? 0);
        }
        const { exchanges } = await place.session.account();
        expect(exchanges.map(({ failure }) => failure)).toEqual([undefined, undefined]);
      });
    });
  });

  /** The wire that each CLI speaks. */
  const harnesses = {
    codex: 'openai-responses',
    'claude-code': 'anthropic-messages',
    opencode: 'openai-chat',
    'qwen-code': 'openai-chat',
  } as const;

  describe.each([
    ['aimock', 'openai-responses'],
    ['LiteLLM', 'openai-chat'],
    ['llama.cpp', 'openai-chat'],
  ] as const)('%s over %s', (name, wire) => {
    const opened = new AsyncDisposableStack();
    let model: ModelConfig;
    let checked: CheckedModel;
    beforeAll(async () => {
      if (name === 'llama.cpp') model = ModelConfig.parse(modelOf(name, wire));
      else {
        const mock = opened.use(await aimock(answerOf));
        const behind = { baseUrl: mock.baseUrl, model: 'big', key: 'none' };
        const { baseUrl } = name === 'aimock' ? mock : opened.use(await liteLlm(behind));
        model = ModelConfig.parse({ wire, baseUrl, model: name === 'aimock' ? 'big' : 'proxied' });
      }
      const place = opened.use(openPlace());
      const config = place.write('offsite.yaml', stringify({ models: { served: model } }));
      const { dataFolder } = place;
      await using context = new Context(contextParts({ config, dataFolder }, { env: process.env }));
      const { signal } = new AbortController();
      checked = await checkModel(context, 'served', {}, { note: () => undefined, signal });
    }, installPatience);
    afterAll(() => opened.disposeAsync());

    test.each(Object.entries(harnesses))(
      '%s does in its sandbox what the check of the model says',
      { timeout: installPatience + turnPatience },
      async (harness, spoken) => {
        const of = checked.examined?.harnesses.find((one) => one.wire === spoken);
        const certificates = await hostCertificates({}, process.env);
        await using bench = await openTrialBench({
          ...(certificates && { extraCertificates: certificates.pem }),
          models: { served: model },
        });
        const result = await bench.trial(
          '',
          {
            harness,
            model: 'served',
            modelConfig: model,
            profile: profileOf({ name: 'plain' }),
            prompt: 'Make one.txt and two.txt.',
            verify: 'test "$(cat one.txt two.txt)" = "$(printf "one\\ntwo")"',
          },
          {
            memory: 3 * 1024 ** 3,
            timeouts: { ...timeouts, install: installPatience, harness: turnPatience },
          },
        );
        const failures = result.models?.exchanges?.flatMap(({ failure }) => failure ?? []) ?? [];
        // CLIs leave answers of their own side questions unread.
        const left = /^(the harness has ended|its client ended it)$/;
        expect(failures.filter((failure) => !left.test(failure))).toEqual([]);
        // Random weights call no tools, and make no files. That is their failure, and not one of their server.
        expect(of?.state).toBe(name === 'llama.cpp' ? 'none' : 'works');
        expect(result.verdict).toBe(of?.state === 'works' ? 'passed' : 'failed');
        if (of?.state !== 'works') return;
        expect(result.finalMessage).toBe('Both are there.');
        expect(commandsOf(result) ?? []).toHaveLength(3);
      },
    );
  });
});

/** What the check asks for, or two turns of work: parallel calls, and a call that needs what they left. */
function answerOf({ tools, results }: AimockQuestion): AimockAnswer {
  const lookup = tools.find(({ name }) => name === 'lookup_code');
  const all = results.join(' ');
  if (lookup && results.length === 0) {
    const toolCalls = ['Lima', 'Oslo'].map((city) => ({ name: lookup.name, arguments: { city } }));
    return { toolCalls };
  }
  if (lookup) return { content: all };
  const run = (command: string) => {
    const { tool: name, ...call } = shellCall(tools, command) ?? expect.fail('no shell is offered');
    return { name, ...call };
  };
  if (tools.length === 0) return { content: 'A rehearsal' };
  if (results.length === 0) return { toolCalls: ['echo one > one.txt', 'echo two > two.txt'].map(run) };
  if (all.includes('one+two')) return { content: 'Both are there.' };
  return { toolCalls: [run('paste -d+ one.txt two.txt')] };
}
