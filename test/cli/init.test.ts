import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { ConfigFile } from '../../src/suite/config-file.ts';
import { SuiteFile } from '../../src/suite/suite-file.ts';
import { eachPlace, place } from './each-place.ts';
import { offsite, offsiteHere, startInTerminal } from './offsite.ts';

eachPlace();

/** A port on which nothing listens. */
const closed = ['--model-ports', '9'];
const init = (args: string[] = [], env: Record<string, string> = {}) =>
  offsite(place, ['init', ...closed, ...args], { env, dataFolder: null });
const read = (path: string) => readFileSync(join(place.folder, path), 'utf8');

/** A server that answers every request in one way; what it was asked. */
async function server(
  answer: (url: string) => { status?: number; headers?: Record<string, string>; body: string },
) {
  const asked: string[] = [];
  const http = createServer(({ url = '' }, response) => {
    asked.push(url);
    const { status = 200, headers = {}, body } = answer(url);
    response.writeHead(status, headers).end(body);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  return { port, asked, [Symbol.dispose]: () => void http.close() };
}

test('a fresh folder gets a suite that is sound and that passes at once', async () => {
  const made = await init(['--yes']);
  expect(made.exitCode, made.stderr).toBe(0);
  expect(made.stdout).toContain('offsite run evals/suite.yaml');
  const checked = await offsiteHere(place, ['check', 'evals/suite.yaml']);
  expect(checked.exitCode, checked.stderr + checked.stdout).toBe(0);
  const ran = await offsiteHere(place, ['run', 'evals/suite.yaml', '--json']);
  expect(ran.exitCode, ran.stderr).toBe(0);
  expect(JSON.parse(ran.stdout)).toMatchObject({ passed: 1, failed: 0, void: 0 });
});

test('what is written names what was found, and editors get schemas for it', async () => {
  using models = await server(() => ({ body: JSON.stringify({ data: [{ id: 'Qwen/Qwen3-Coder' }] }) }));
  execFileSync('git', ['init', '-q'], { cwd: place.folder });
  const made = await init(['--yes', '--model-ports', String(models.port)], {
    OPENAI_API_KEY: 'key-12345678',
  });
  expect(made.exitCode, made.stderr).toBe(0);
  for (const part of ['a git repository', 'OPENAI_API_KEY is set']) expect(made.stderr).toContain(part);
  expect(models.asked).toContain('/v1/models');
  const text = read('offsite.yaml');
  expect(text).not.toContain('key-12345678');
  const config = ConfigFile.parse(parse(text));
  expect(Object.keys(config.models)).toEqual(['rehearsal', 'gpt', 'qwen3-coder']);
  expect(config.models['qwen3-coder']).toMatchObject({
    baseUrl: `http://127.0.0.1:${models.port}/v1`,
    model: 'Qwen/Qwen3-Coder',
  });
  expect(config.allowOutside).toEqual(['.']);
  SuiteFile.parse(parse(read('evals/suite.yaml')));
  for (const [file, folder] of [
    ['offsite.yaml', '.'],
    ['evals/suite.yaml', 'evals'],
    ['evals/rehearsal.yaml', 'evals'],
  ]) {
    const [, schema = ''] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(read(file ?? '')) ?? [];
    const whole = JSON.parse(read(join(folder ?? '', schema)));
    const inside = /^#\/\$defs\/(\w+)$/.exec(whole.$ref)?.[1];
    expect(inside === undefined ? whole : whole.$defs[inside]).toMatchObject({ type: 'object' });
  }
});

test('a person chooses what the suite evaluates', async () => {
  const terminal = startInTerminal(place, ['init', ...closed], {
    columns: 200,
    env: { ANTHROPIC_API_KEY: 'key-12345678' },
    dataFolder: null,
  });
  const shows = (text: string) =>
    expect.poll(async () => (await terminal.screen.lines()).join('\n'), { timeout: 30_000 }).toContain(text);
  await shows('Model to evaluate (claude;');
  terminal.type('nothing\r');
  await shows('nothing\nModel to evaluate');
  terminal.type('claude\r');
  await shows('Harness (');
  terminal.type('\r');
  expect(await terminal.ended).toBe(0);
  const { variants } = SuiteFile.parse(parse(read('evals/suite.yaml')));
  expect(variants[1]).toMatchObject({ model: 'claude', harness: 'claude-code' });
});

test('a person who leaves has nothing written', async () => {
  const terminal = startInTerminal(place, ['init', ...closed], {
    env: { ANTHROPIC_API_KEY: 'key-12345678' },
    dataFolder: null,
  });
  await expect
    .poll(async () => (await terminal.screen.lines()).join('\n'), { timeout: 30_000 })
    .toContain('Model');
  terminal.type('\u0003');
  expect(await terminal.ended).toBe(130);
  expect(existsSync(join(place.folder, 'evals'))).toBe(false);
});

test('nothing is overwritten without --force', async () => {
  writeFileSync(join(place.folder, 'offsite.yaml'), 'mine: true\n');
  const refused = await init(['--yes']);
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toContain('offsite.yaml exists; nothing was written');
  expect(read('offsite.yaml')).toBe('mine: true\n');
  expect(existsSync(join(place.folder, 'evals'))).toBe(false);
  expect((await init(['--yes', '--force'])).exitCode).toBe(0);
  expect(read('offsite.yaml')).toContain('rehearsal');
});

test('nothing is written through a link that a hostile repository brings', async () => {
  const outside = join(place.folder, 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'settings'), 'mine\n');
  symlinkSync(join(outside, 'settings'), join(place.folder, 'offsite.yaml'));
  symlinkSync(join(outside, 'gone'), join(place.folder, 'evals'));
  for (const force of [[], ['--force']]) {
    const refused = await init(['--yes', ...force]);
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain('evals is a link; nothing was written');
  }
  rmSync(join(place.folder, 'evals'));
  expect((await init(['--yes'])).stderr).toContain('offsite.yaml exists');
  expect((await init(['--yes', '--force'])).exitCode).toBe(0);
  expect(lstatSync(join(place.folder, 'offsite.yaml')).isFile()).toBe(true);
  expect(readFileSync(join(outside, 'settings'), 'utf8')).toBe('mine\n');
});

test('a hostile server on this machine leads nowhere else, and its names go nowhere', async () => {
  using other = await server(() => ({ body: '{}' }));
  using leading = await server(() => ({
    status: 302,
    headers: { location: `http://127.0.0.1:${other.port}/v1/models` },
    body: '',
  }));
  const evil = ['a\nmodels: {}', '\u001b]52;c;x\u0007', '# x', '"', 'good:7b'];
  using naming = await server(() => ({ body: JSON.stringify({ data: evil.map((id) => ({ id })) }) }));
  const body = `{"data":[${'{"id":"a"},'.repeat(600_000)}{"id":"b"}]}`;
  using endless = await server(() => ({ body }));
  const servers = [leading, naming, endless].map(({ port }) => String(port));
  const made = await init(['--yes', '--model-ports', ...servers], {
    NODE_USE_ENV_PROXY: '1',
    HTTP_PROXY: `http://127.0.0.1:${other.port}`,
  });
  expect(made.exitCode, made.stderr).toBe(0);
  expect(other.asked).toEqual([]);
  expect(Object.keys(ConfigFile.parse(parse(read('offsite.yaml'))).models)).toEqual(['rehearsal', 'good-7b']);
});
