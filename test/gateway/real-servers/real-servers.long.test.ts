import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hostCertificates } from '../../../src/cli/host-certificates.ts';
import { commandsOf } from '../../../src/record/timeline.ts';
import { ModelConfig, type Wire, wires } from '../../../src/suite/model-config.ts';
import { profileOf } from '../../../src/suite/plan.ts';
import { installPatience, turnPatience } from '../../runners/runner-bench.ts';
import { openTrialBench, timeouts } from '../../trial/trial-bench.ts';
import { clients } from '../translation/clients.ts';
import { placeOf, scriptedPlace } from '../translation/translated-place.ts';
import { byPython, liteLlm, llamaCpp, type RealServer } from './serve.ts';

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
          expect(heard.input).toBeGreaterThan(0);
        }
        const { exchanges } = await place.session.account();
        expect(exchanges.map(({ failure }) => failure)).toEqual([undefined, undefined]);
      });
    });
  });

  /** Two turns: parallel calls, and a call that needs what they left. */
  const script = {
    turns: [
      { text: 'I make two files.', run: ['echo one > one.txt', 'echo two > two.txt'] },
      { run: 'paste -d+ one.txt two.txt' },
      { when: { result: 'one+two' }, text: 'Both are there.' },
    ],
    otherwise: 'A rehearsal',
  };

  test.each(['codex', 'claude-code', 'opencode', 'qwen-code'])(
    '%s works in its sandbox with a model behind LiteLLM',
    { timeout: installPatience + turnPatience },
    async (harness) => {
      await using behind = await scriptedPlace('openai-chat', script);
      await using proxy = await liteLlm({ baseUrl: `${behind.origin}/v1`, model: 'big', key: behind.token });
      const model = ModelConfig.parse({ wire: 'openai-chat', baseUrl: proxy.baseUrl, model: 'proxied' });
      const certificates = await hostCertificates({}, process.env);
      await using bench = await openTrialBench({
        ...(certificates && { extraCertificates: certificates.pem }),
        models: { proxied: model },
      });
      const result = await bench.trial(
        '',
        {
          ...{ harness, model: 'proxied', modelConfig: model, profile: profileOf({ name: 'plain' }) },
          prompt: 'Make one.txt and two.txt.',
          verify: 'test "$(cat one.txt two.txt)" = "$(printf "one\\ntwo")"',
        },
        { memory: 3 * 1024 ** 3, timeouts: { ...timeouts, install: installPatience, harness: turnPatience } },
      );
      expect(result.verdict).toBe('passed');
      expect(result.finalMessage).toBe('Both are there.');
      const commands = (commandsOf(result) ?? []).map(({ command }) => command);
      expect(commands).toHaveLength(3);
      const failures = result.models?.exchanges?.flatMap(({ failure }) => failure ?? []);
      expect(failures).toEqual([]);
    },
  );
});
