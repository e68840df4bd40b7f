import { chmodSync, lstatSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { wires } from '../../../src/suite/model-config.ts';
import {
  anthropicRoutes,
  llamaCppRoutes,
  ok,
  ollamaRoutes,
  serverOf,
  vllmRoutes,
} from '../../gateway/probe/model-servers.ts';
import { type InTerminal, offsite, startInTerminal } from '../offsite.ts';
import { openPlace, type Place } from '../place.ts';
import { modelsIn } from './models-in-process.ts';

afterEach(() => vi.unstubAllEnvs());

const key = 'sk-a-secret-that-is-long-enough';
const comment = '# our models, from best to worst\n';

function placed(config = comment): { place: Place; file: string; read(): string } {
  const place = openPlace();
  const file = place.write('offsite.yaml', config);
  return { place, file, read: () => readFileSync(file, 'utf8') };
}

describe('models add, an address as people have it', () => {
  test('in place of a name', async () => {
    await using server = await serverOf(llamaCppRoutes);
    const { place, read } = placed();
    using _ = place;
    const { exitCode } = await modelsIn(place, ['add', `http://127.0.0.1:${server.port}/v1`, '--yes']);
    expect(exitCode).toBe(0);
    expect(Object.values(parse(read()).models)).toMatchObject([
      { baseUrl: `http://127.0.0.1:${server.port}/v1` },
    ]);
  });

  test('of a server that does not say its wires: all of them are named', async () => {
    await using server = await serverOf({ 'GET /v1/models': ok({ data: [{ id: 'x' }] }) });
    const { place } = placed();
    using _ = place;
    const args = ['add', 'm', '--base-url', `http://127.0.0.1:${server.port}`, '--model', 'x', '--yes'];
    const { stderr } = await modelsIn(place, args);
    for (const wire of wires) expect(stderr).toContain(wire);
  });

  test('of a server that breaks the connection when a wire is asked for: what broke is said', async () => {
    const routes = { 'GET /v1/models': ok({ data: [{ id: 'x' }] }) };
    await using server = await serverOf(routes, (response) => response.destroy());
    const { place } = placed();
    using _ = place;
    const url = `http://127.0.0.1:${server.port}`;
    const { stderr } = await modelsIn(place, ['add', 'm', '--base-url', url, '--model', 'x', '--yes']);
    expect(stderr).toMatch(/which wire it speaks: POST \/chat\/completions: .*127\.0\.0\.1:\d+ failed: /);
  });

  test.each(['/v1/chat/completions', '/v1/models', '/v1/', '/v1/responses/'])('with %s', async (path) => {
    await using server = await serverOf(llamaCppRoutes);
    const { place, read } = placed();
    using _ = place;
    const url = `http://127.0.0.1:${server.port}`;
    expect((await modelsIn(place, ['add', 'm', '--base-url', `${url}${path}`, '--yes'])).exitCode).toBe(0);
    expect(parse(read()).models.m.baseUrl).toBe(`${url}/v1`);
  });

  test.each([
    [
      'https://our.openai.azure.com/openai/deployments/small/chat/completions?api-version=2024-10-21',
      [],
      {
        wire: ['openai-chat'],
        baseUrl: 'https://our.openai.azure.com/openai/deployments/small',
        model: 'small',
        query: { 'api-version': '2024-10-21' },
      },
    ],
    [
      'https://our.openai.azure.com/',
      ['--model', 'large'],
      {
        wire: ['openai-responses', 'openai-chat'],
        baseUrl: 'https://our.openai.azure.com/openai/v1',
        model: 'large',
      },
    ],
  ])('Azure by one command: %s', async (url, args, expected) => {
    const { place, read } = placed();
    using _ = place;
    vi.stubEnv('AZURE_OPENAI_API_KEY', key);
    expect((await modelsIn(place, ['add', 'az', '--base-url', url, ...args, '--yes'])).exitCode).toBe(0);
    const own = { apiKeyEnv: 'AZURE_OPENAI_API_KEY', auth: 'api-key' };
    expect(parse(read()).models.az).toEqual({ ...expected, ...own });
  });

  test('with headers, parameters and the header of the key, which the server gets too', async () => {
    await using server = await serverOf({
      ...llamaCppRoutes,
      'GET /gate/v1/models': ok({ object: 'list', data: [{ id: 'm' }] }),
    });
    const { place, read } = placed();
    using _ = place;
    vi.stubEnv('GATE_KEY', key);
    const { exitCode, stderr } = await modelsIn(place, [
      'add',
      'm',
      '--base-url',
      `http://127.0.0.1:${server.port}/gate/v1`,
      '--wire',
      'openai-chat',
      '--api-key-env',
      'GATE_KEY',
      '--auth',
      'api-key',
      '--header',
      'x-team: evals',
      '--query',
      'team=a',
      '--yes',
    ]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const { auth, headers, query } = parse(read()).models.m;
    expect({ auth, headers, query }).toEqual({
      auth: 'api-key',
      headers: { 'x-team': 'evals' },
      query: { team: 'a' },
    });
    expect(server.received[0]).toMatchObject({
      path: '/gate/v1/models?team=a',
      headers: { 'api-key': key, 'x-team': 'evals' },
    });
  });

  test.each([
    [['--api-key-env', key]],
    [['--api-key-env', 'gsk_A1b2C3d4E5f6G7h8I9j0']],
    [['--header', `authorization: Bearer ${key}`]],
    [['--header', 'x-team: 0a1b2c3d4e5f60718293a4b5c6d7e8f9']],
    [['--query', 'api_key=short']],
  ])('a key in place of its name is refused and not printed: %s', async (args) => {
    const { place, read } = placed();
    using _ = place;
    const printed = await modelsIn(place, [
      'add',
      'm',
      '--base-url',
      'http://127.0.0.1:1/v1',
      ...args,
      '--yes',
    ]);
    expect(printed.exitCode).toBe(2);
    const secret = args[1]?.split(/[ =]/).at(-1) ?? '';
    expect(printed.stdout + printed.stderr).not.toContain(secret);
    expect(read()).toBe(comment);
  });
});

test.each(['sk-ant-api03-a-b-c', 'AIzaSyA1234567890abcdefghijklmnopqrstu', 'a'.repeat(40)])(
  'a key in the configuration, in place of its name, is refused and not printed: %s',
  async (pasted) => {
    const { place } = placed(`models:
  m: { wire: openai-chat, baseUrl: 'http://127.0.0.1:1/v1', apiKeyEnv: ${pasted} }
`);
    using _ = place;
    const { exitCode, stdout, stderr } = await modelsIn(place, ['check', 'm']);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('expected the name of an environment variable');
    expect(stdout + stderr).not.toContain(pasted);
  },
);

test('an endpoint as the base address in the configuration is refused with what to leave out', async () => {
  const { place } = placed("models: { m: { wire: openai-chat, baseUrl: 'http://a/v1/chat/completions' } }\n");
  using _ = place;
  const { exitCode, stderr } = await modelsIn(place, ['check', 'm']);
  expect({ exitCode, stderr }).toEqual({
    exitCode: 2,
    stderr: expect.stringContaining('leave out /chat/completions'),
  });
});

describe('models add, without a person', () => {
  test('writes what the server tells, and keeps the file', async () => {
    await using server = await serverOf(llamaCppRoutes);
    const { place, read } = placed();
    using _ = place;
    const { exitCode, stdout } = await modelsIn(place, [
      'add',
      '--base-url',
      `http://127.0.0.1:${server.port}`,
    ]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain('offsite models check qwen2.5-coder');
    expect(read()).toBe(`${comment}models:
  qwen2.5-coder:
    wire: [openai-chat]
    baseUrl: http://127.0.0.1:${server.port}/v1
    contextWindow: 32768
    maxParallel: 2
`);
  });

  test('asks no server if everything is given', async () => {
    await using server = await serverOf({ 'GET /v1/models': ok({ data: [{ id: 'x' }] }) });
    const { place, read } = placed();
    using _ = place;
    const url = `http://127.0.0.1:${server.port}/v1`;
    const args = ['--base-url', url, '--model', 'org/big', '--wire', 'openai-chat,anthropic-messages'];
    const { exitCode, stdout } = await modelsIn(place, [
      'add',
      'big',
      ...args,
      '--api-key-env',
      'BIG_KEY',
      '--yes',
    ]);
    expect({ exitCode, received: server.received }).toEqual({ exitCode: 0, received: [] });
    expect(parse(read()).models).toEqual({
      big: {
        wire: ['openai-chat', 'anthropic-messages'],
        baseUrl: url,
        model: 'org/big',
        apiKeyEnv: 'BIG_KEY',
      },
    });
    expect(stdout).toContain('set BIG_KEY to its key');
  });

  test('chooses a model that the server has', async () => {
    await using server = await serverOf(ollamaRoutes);
    const { place, read } = placed();
    using _ = place;
    const args = ['add', 'small', '--base-url', `http://127.0.0.1:${server.port}`];
    const unnamed = await modelsIn(place, args);
    expect(unnamed).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('qwen3-coder:30b, llama3.2:latest'),
    });
    expect(unnamed.stderr).toContain('--model ID');
    expect(read()).toBe(comment);
    expect((await modelsIn(place, [...args, '--model', 'llama3.2:latest'])).exitCode).toBe(0);
    expect(parse(read()).models.small).toMatchObject({
      wire: ['openai-chat', 'openai-responses', 'anthropic-messages'],
      model: 'llama3.2:latest',
    });
  });

  test('finds a server on this machine, on the ports that it may look at', async () => {
    await using server = await serverOf(vllmRoutes);
    await using silent = await serverOf({}, () => undefined);
    const { place, read } = placed();
    using _ = place;
    const args = ['add', 'mine', '--local', '--ports', `${server.port},${silent.port}`];
    expect(await modelsIn(place, args)).toMatchObject({ exitCode: 0 });
    expect(parse(read()).models.mine).toMatchObject({ contextWindow: 65536 });
  });

  test('says which servers answer if there are several', async () => {
    await using one = await serverOf(vllmRoutes);
    await using other = await serverOf(llamaCppRoutes);
    using place = placed().place;
    const args = ['add', '--local', '--ports', `${one.port},${other.port}`];
    const { exitCode, stderr } = await modelsIn(place, args);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(`http://127.0.0.1:${one.port}/v1, http://127.0.0.1:${other.port}/v1`);
  });

  test('says so if no server answers', async () => {
    const gone = await serverOf({});
    await gone[Symbol.asyncDispose]();
    using place = placed().place;
    const { exitCode, stderr } = await modelsIn(place, ['add', '--local', '--ports', `${gone.port}`]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining('--base-url') });
  });

  test('sends the key to the server and writes it nowhere', async () => {
    vi.stubEnv('MINE_KEY', key);
    await using server = await serverOf(anthropicRoutes);
    const { place, read } = placed();
    using _ = place;
    const args = ['add', '--base-url', `http://127.0.0.1:${server.port}`, '--api-key-env', 'MINE_KEY'];
    const { exitCode, stdout, stderr } = await modelsIn(place, args);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(server.received.some(({ headers }) => headers['x-api-key'] === key)).toBe(true);
    expect(parse(read()).models['claude-sonnet-4-5']).toMatchObject({
      wire: ['anthropic-messages'],
      apiKeyEnv: 'MINE_KEY',
      contextWindow: 200000,
    });
    expect(read() + stdout).not.toContain(key);
  });

  test.each([
    [['add', '--api-key-env', key], /name of an environment variable/],
    [['add', '--base-url', `https://me:${key}@models.example/v1`], /without a user/],
    [['add', '--base-url', `https://models.example/v1?key=${key}`], /without a user, a fragment and a key/],
    [['add', '--base-url', 'models.example'], /expected an address/],
    [['add'], /address of the model[\s\S]*--base-url URL, or --local/],
  ])('refuses %j and repeats no key', async (args, message) => {
    const { place, read } = placed();
    using _ = place;
    const { exitCode, stderr } = await modelsIn(place, args);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain(key);
    expect(read()).toBe(comment);
  });

  test('says that a server wants a key', async () => {
    await using server = await serverOf({}, ok({ error: { message: 'Incorrect API key' } }, 401));
    using place = placed().place;
    const args = ['add', '--base-url', `http://127.0.0.1:${server.port}`];
    expect((await modelsIn(place, args)).stderr).toMatch(/requires a key[\s\S]*--api-key-env/);
    const unset = await modelsIn(place, [...args, '--api-key-env', 'NOT_SET_HERE']);
    expect(unset).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/NOT_SET_HERE[\s\S]*--wire and --model/),
    });
  });

  test('exits with 3 for what is no API', async () => {
    await using server = await serverOf({}, (response) => response.writeHead(200).end('<!doctype html>'));
    const { place, read } = placed();
    using _ = place;
    const { exitCode, stderr } = await modelsIn(place, [
      'add',
      '--base-url',
      `http://127.0.0.1:${server.port}`,
    ]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 3, stderr: expect.stringContaining('web page') });
    expect(read()).toBe(comment);
  });
});

describe('the configuration', () => {
  const args = ['--base-url', 'http://127.0.0.1:1/v1', '--model', 'm', '--wire', 'openai-chat', '--yes'];

  test('keeps a model of the same name, unless it is forced', async () => {
    const before = 'models:\n  mine: { scripted: a.yaml } # rehearsal\n';
    const { place, read } = placed(before);
    using _ = place;
    const refused = await modelsIn(place, ['add', 'mine', ...args]);
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--force') });
    expect(read()).toBe(before);
    expect(await modelsIn(place, ['add', 'mine', ...args, '--force'])).toMatchObject({ exitCode: 0 });
    expect(parse(read()).models.mine).toEqual({
      wire: ['openai-chat'],
      baseUrl: 'http://127.0.0.1:1/v1',
      model: 'm',
    });
  });

  test('that is wrong is not touched', async () => {
    const { place, read } = placed('modles: {}\n');
    using _ = place;
    expect(await modelsIn(place, ['add', 'mine', ...args])).toMatchObject({ exitCode: 2 });
    expect(read()).toBe('modles: {}\n');
  });

  test('keeps its mode and the link that leads to it, and nothing else is left', async () => {
    const { place, file, read } = placed();
    using _ = place;
    const real = join(place.folder, 'real.yaml');
    renameSync(file, real);
    chmodSync(real, 0o600);
    symlinkSync(real, file);
    expect(await modelsIn(place, ['add', 'mine', ...args])).toMatchObject({ exitCode: 0 });
    expect([lstatSync(file).isSymbolicLink(), statSync(real).mode & 0o777]).toEqual([true, 0o600]);
    expect(parse(read()).models.mine).toMatchObject({ model: 'm' });
    expect(readdirSync(place.folder).toSorted()).toEqual(['project', 'real.yaml']);
  });

  test('is made in the working folder if there is none', async () => {
    using place = openPlace();
    const { exitCode, stdout } = await offsite(place, ['models', 'add', 'mine', ...args, '--json']);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ file: 'offsite.yaml', name: 'mine' });
    expect(parse(readFileSync(join(place.folder, 'offsite.yaml'), 'utf8')).models.mine).toMatchObject({
      model: 'm',
    });
  });
});

const shown = async ({ screen }: InTerminal) => (await screen.lines()).join('\n');

describe('models add, with a person', () => {
  test('asks what the server does not tell', async () => {
    await using server = await serverOf(ollamaRoutes);
    using place = openPlace();
    const running = startInTerminal(place, ['models', 'add', '--ports', `${server.port}`]);
    const answer = async (question: RegExp, keys: string) => {
      await vi.waitFor(async () => expect(await shown(running)).toMatch(question), {
        timeout: 60_000,
        interval: 50,
      });
      running.type(`${keys}\r`);
    };
    await answer(/Where is the model\? .* \[1\]:/, '');
    await answer(/2\) llama3\.2:latest\s+Which model \[1\]:/, '7');
    await answer(/a number from 1 to 2\s+Which model \[1\]:/, '2');
    await answer(/name for suites \[llama3\.2-latest\]:/, 'small');
    await answer(/Write it \(y\/n\) \[y\]:/, '');
    expect(await running.ended).toBe(0);
    const { models } = parse(readFileSync(join(place.folder, 'offsite.yaml'), 'utf8'));
    expect(models.small).toMatchObject({
      model: 'llama3.2:latest',
      baseUrl: `http://127.0.0.1:${server.port}/v1`,
    });
  });

  test('writes nothing at Ctrl-C', async () => {
    using place = openPlace();
    const running = startInTerminal(place, ['models', 'add']);
    await vi.waitFor(async () => expect(await shown(running)).toMatch(/Where is the model/), {
      timeout: 60_000,
    });
    running.type('\u0003');
    expect(await running.ended).toBe(130);
    expect(readdirSync(place.folder)).not.toContain('offsite.yaml');
  });
});
