import { afterEach, describe, expect, test, vi } from 'vitest';
import { stringify } from 'yaml';
import { llamaCppRoutes, ok, ollamaRoutes, serverOf, vllmRoutes } from '../../gateway/probe/model-servers.ts';
import { ableModel, scriptedServer } from '../../gateway/probe/scripted-server.ts';
import { json, type Step } from '../../gateway/test-upstream.ts';
import { openPlace } from '../place.ts';
import { modelsIn } from './models-in-process.ts';

afterEach(() => vi.unstubAllEnvs());

/** What `models check` found at a server, with `model` as it is configured. */
async function checked(
  server: { port: number },
  model: Record<string, unknown> = {},
  args: string[] = [],
): Promise<{ exitCode: number; stdout: string; stderr: string; found: ReturnType<typeof JSON.parse> }> {
  using place = openPlace();
  const baseUrl = `http://127.0.0.1:${server.port}/v1`;
  place.write('offsite.yaml', stringify({ models: { mine: { wire: 'openai-chat', baseUrl, ...model } } }));
  const ended = await modelsIn(place, ['check', ...args, '--json']);
  return { ...ended, found: ended.stdout === '' ? undefined : JSON.parse(ended.stdout) };
}

const settings = ({ findings }: { findings: { set?: string }[] }) => findings.flatMap(({ set }) => set ?? []);
const problems = ({ findings }: { findings: { level: string; says: string }[] }) =>
  findings.filter(({ level }) => level === 'problem').map(({ says }) => says);

const upstreamName = { model: 'qwen2.5-coder' };

describe('models check', () => {
  test('finds wires, tools, speed and context, and what to set', async () => {
    await using server = await scriptedServer(ableModel, {
      spoken: ['openai-chat', 'anthropic-messages'],
      routes: llamaCppRoutes,
    });
    const { exitCode, found } = await checked(server, upstreamName);
    expect(exitCode).toBe(0);
    const { examined } = found;
    expect(examined).toMatchObject({
      server: { kind: 'llama.cpp', parallel: 2 },
      wires: [
        { wire: 'openai-chat', state: 'works' },
        { wire: 'openai-responses', state: 'missing' },
        { wire: 'anthropic-messages', state: 'works' },
        { wire: 'gemini', state: 'missing' },
      ],
      tools: { state: 'works', parallel: true },
      speed: { streaming: 'works', samples: 3 },
      told: { contextWindow: 32768, longestContext: 131072 },
    });
    expect(examined.speed.tokensPerSecond).toBeGreaterThan(0);
    expect(examined.speed.firstTokenMs).toBeGreaterThan(0);
    expect(settings(examined)).toEqual([
      'wire: [openai-chat, anthropic-messages]',
      'contextWindow: 32768',
      'maxParallel: 2',
    ]);
    // One call, two of the tools, two as a harness of each wire, three samples, one over another wire. No
    // model answered over the third wire.
    expect({ used: examined.used.requests, asked: server.asked().length }).toEqual({ used: 15, asked: 16 });
    expect(examined.used.inputTokens).toBeGreaterThan(100);
  });

  test('prints for people, and is content with what is set', async () => {
    await using server = await scriptedServer(ableModel, { routes: llamaCppRoutes });
    using place = openPlace();
    const baseUrl = `http://127.0.0.1:${server.port}/v1`;
    const mine = {
      wire: 'openai-chat',
      baseUrl,
      model: 'qwen2.5-coder',
      contextWindow: 32768,
      maxParallel: 2,
    };
    place.write('offsite.yaml', stringify({ models: { mine } }));
    const { exitCode, stdout } = await modelsIn(place, ['check']);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^server +llama\.cpp b6000-abc1234$/m);
    expect(stdout).toMatch(/^speaks +openai-chat$/m);
    expect(stdout).toMatch(/^tools +work, several at a time$/m);
    expect(stdout).toMatch(/^works with +opencode, Codex \(translated\), Claude Code \(translated\)/m);
    expect(stdout).toMatch(/^streaming +works$/m);
    expect(stdout).toMatch(/^speed +[\d.]+ tokens\/s, median of 3$/m);
    expect(stdout).toMatch(/^context +32768 tokens, as the server says$/m);
    expect(stdout).toMatch(/^tokens +\d+ in, \d+ out, in 14 requests$/m);
    expect(stdout).not.toMatch(/advice|problem/);
  });

  test('says what to do where tools do not work', async () => {
    const script = { turns: [{ text: 'I have no tools.', repeat: true }] };
    await using server = await scriptedServer(script, { routes: vllmRoutes });
    const { exitCode, found } = await checked(server, { model: 'Qwen/Qwen3-Coder-30B-A3B-Instruct' });
    expect({ exitCode, state: found.examined.tools.state }).toEqual({ exitCode: 1, state: 'none' });
    expect(problems(found.examined).join()).toMatch(/it called no tool.*--enable-auto-tool-choice/);
  });

  test.each([
    [
      'unused',
      [{ calls: [{ tool: 'lookup_code', arguments: { city: 'Lima' } }] }, { text: 'It is K1-0000.' }],
    ],
    ['malformed', [{ calls: [{ tool: 'lookup_code', arguments: '{"city": "Li' }] }]],
    ['malformed', [{ calls: [{ tool: 'other', arguments: {} }] }]],
    ['failed', [{ trouble: { error: { status: 400, message: 'this model does not support tools' } } }]],
  ])('tells tools that are %s', async (state, turns) => {
    const script = {
      turns: [...turns.map((turn) => ({ when: { tools: true }, ...turn })), { text: 'ready', repeat: true }],
    };
    await using server = await scriptedServer(script);
    const { exitCode, found } = await checked(server);
    expect({ exitCode, tools: found.examined.tools }).toMatchObject({
      exitCode: 1,
      tools: { state, parallel: false },
    });
    expect(problems(found.examined)).toEqual([expect.stringContaining('Tools do not work')]);
  });

  test.each([
    ['breaks off', { cut: { afterEvents: 2 } }],
    ['is garbage', { garbage: true }],
    ['is an error', { error: { status: 400, message: 'no streams here' } }],
  ])('tells a stream that %s', async (_, trouble) => {
    const script = {
      turns: [
        { when: { user: 'Sample' }, text: 'one, two', trouble, repeat: true },
        { text: 'ready', repeat: true },
      ],
    };
    await using server = await scriptedServer(script);
    const { exitCode, found } = await checked(server);
    expect({ exitCode, speed: found.examined.speed }).toMatchObject({
      exitCode: 1,
      speed: { streaming: 'failed', samples: 0 },
    });
    expect(problems(found.examined).join()).toContain('Streaming does not work');
  });

  test('tells a configured wire that the server does not speak', async () => {
    await using server = await scriptedServer(ableModel);
    const { found } = await checked(server, { wire: ['openai-chat', 'openai-responses'] });
    expect(problems(found.examined).join()).toMatch(/configured with openai-responses/);
    expect(settings(found.examined)).toEqual(['wire: [openai-chat]']);
  });

  test('names the wire to set if the first one is not spoken', async () => {
    await using server = await scriptedServer(ableModel);
    const { exitCode, stderr } = await checked(server, { wire: 'anthropic-messages' });
    expect(exitCode).toBe(3);
    expect(stderr).toContain('It answers over openai-chat: set `wire: [openai-chat]`.');
  });

  test('tells that Ollama holds less than the model could, and less than is set', async () => {
    await using server = await scriptedServer(ableModel, { routes: ollamaRoutes });
    const { found } = await checked(server, { model: 'qwen3-coder:30b', contextWindow: 32768 });
    expect(found.examined.told).toEqual({ contextWindow: 4096, longestContext: 262144, tools: true });
    expect(problems(found.examined).join()).toMatch(
      /4096 tokens, less than contextWindow: 32768.*OLLAMA_CONTEXT_LENGTH/,
    );
    expect(settings(found.examined)).toEqual(['contextWindow: 4096']);
  });

  test('measures with --deep what context it holds, where longer prompts are refused', async () => {
    await using limited = await limitedServer(6_000, 'refuses');
    const { exitCode, found, stderr } = await checked(limited, {}, [
      '--deep',
      '--up-to',
      '16000',
      '--wire',
      'openai-chat',
    ]);
    // Its tools do not work.
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/up to [\d.]+k tokens in total/);
    const { holds, fails } = found.examined.measuredContext;
    expect(holds).toBeGreaterThan(5_000);
    expect(holds).toBeLessThanOrEqual(6_000);
    expect(fails.how).toBe('refused');
    expect(settings(found.examined)).toContain(`contextWindow: ${holds}`);
  });

  test('measures where longer prompts are cut without a word', async () => {
    await using limited = await limitedServer(3_000, 'cuts');
    const { found } = await checked(limited, {}, ['--deep', '--up-to', '16000', '--wire', 'openai-chat']);
    expect(found.examined.measuredContext).toMatchObject({ fails: { how: 'cut' } });
    expect(found.examined.measuredContext.holds).toBeLessThanOrEqual(3_000);
    expect(problems(found.examined).join()).toContain('an agent forgets its task');
  });

  test('sends no prompt longer than --up-to', async () => {
    await using limited = await limitedServer(100_000, 'refuses');
    const { found } = await checked(limited, {}, ['--deep', '--up-to', '5000', '--wire', 'openai-chat']);
    const { holds, fails } = found.examined.measuredContext;
    expect({ fails, isNear: holds > 4_000 && holds <= 5_500 }).toEqual({ fails: undefined, isNear: true });
  });

  test('asks which model if there are several', async () => {
    using place = openPlace();
    place.write('offsite.yaml', 'models: { a: { scripted: a.yaml }, b: { scripted: b.yaml } }');
    expect(await modelsIn(place, ['check'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('a, b'),
    });
  });

  test('asks a model that answers from a file nothing that its file cannot have', async () => {
    using place = openPlace();
    place.write('offsite.yaml', 'models: { filed: { scripted: a.yaml } }');
    place.write('a.yaml', 'turns: [{ text: Done., repeat: true }]');
    const { exitCode, stdout, stderr } = await modelsIn(place, ['check', 'filed']);
    expect(exitCode, stderr).toBe(0);
    expect(stderr).toContain('it answers from a file');
    expect(stdout).toContain('Done.');
    expect(stdout).not.toMatch(/tools|harness/);
  });

  test('refuses a model that repeats recorded answers', async () => {
    using place = openPlace();
    place.write('offsite.yaml', 'models: { again: { replay: a.jsonl } }');
    for (const command of ['check', 'bench'])
      expect(await modelsIn(place, [command, 'again'])).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining('repeats recorded answers'),
      });
  });

  test('finds a model by its other name', async () => {
    await using server = await scriptedServer(ableModel);
    const { found } = await checked(server, { aliases: ['other'] }, ['other', '--quick']);
    expect(found.model).toBe('mine');
  });
});

/** A model whose context ends: it counts a token for three characters, and needs no tools. */
function limitedServer(most: number, how: 'refuses' | 'cuts') {
  const tooLong = {
    error: {
      message: "This model's maximum context length is exceeded",
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
    },
  };
  const answerTo = (text: string): Step => {
    const tokens = Math.ceil(text.length / 3);
    if (tokens > most && how === 'refuses') return json(400, tooLong);
    const kept = tokens > most ? text.slice(-3 * most) : text;
    const content = /The word is (\w+)/.exec(kept)?.[1] ?? 'I do not know.';
    return ok({
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
      usage: {
        prompt_tokens: Math.min(tokens, most),
        completion_tokens: 5,
        total_tokens: Math.min(tokens, most) + 5,
      },
    });
  };
  return serverOf({
    'POST /v1/chat/completions': (response, received) => {
      const { messages = [] } = JSON.parse(received.body.toString('utf8'));
      answerTo(messages.map(({ content }: { content: string }) => content).join('\n'))(response, received);
    },
  });
}
