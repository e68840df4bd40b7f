import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa, execaSync } from 'execa';
import type { JsonObject } from '../../../src/gateway/wires/lenient.ts';
import { freePort } from '../../free-port.ts';
import { needs } from '../../needs.ts';

/** Servers of models that people run, on a port of this machine. They need Python and PyPI. */
export interface RealServer extends AsyncDisposable {
  /** With `/v1`. */
  baseUrl: string;
}

const here = import.meta.dirname;

const looked = execaSync('python3', ['-c', 'import ensurepip, venv'], { reject: false });
/** For tests that install these servers. */
export const byPython = needs(!looked.failed, 'python3 with venv');

/** llama.cpp's server, with a model of random weights. */
export async function llamaCpp(): Promise<RealServer> {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-llama-'));
  const port = await freePort();
  const program = [join(here, 'llama-cpp.py'), join(folder, 'tiny.gguf'), String(port)];
  return serving('python', program, { port, ready: 'http://127.0.0.1', folder });
}

/** One question of the model: the messages since the user's last one, and the tools. */
export interface AimockQuestion {
  results: readonly string[];
  tools: readonly { name: string; parameters: JsonObject }[];
}
export type AimockAnswer = { content: string } | { toolCalls: { name: string; arguments: JsonObject }[] };

/** aimock, which speaks all wires, with a model that answers in this way. */
export async function aimock(answer: (question: AimockQuestion) => AimockAnswer): Promise<RealServer> {
  const folder = await installed(`aimock ${aimockVersion}`, (to) =>
    execa('npm', [
      'install',
      '--no-audit',
      '--no-fund',
      '--prefix',
      to,
      `@copilotkit/aimock@${aimockVersion}`,
    ]),
  );
  const { LLMock } = await import(join(folder, 'node_modules/@copilotkit/aimock/dist/index.js'));
  const mock = new LLMock({ port: 0, logLevel: 'silent' });
  // What it is asked arrives in the form of openai-chat, whatever its wire.
  mock.on({}, ({ messages = [], tools = [] }: AimockRequest) => {
    const since = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1);
    const said = answer({
      results: since.flatMap(({ role, content }) => (role === 'tool' ? [JSON.stringify(content)] : [])),
      tools: tools.map(({ function: tool }) => tool),
    });
    if ('content' in said) return said;
    const toolCalls = said.toolCalls.map((call) => ({ ...call, arguments: JSON.stringify(call.arguments) }));
    return { toolCalls };
  });
  await mock.start();
  return { baseUrl: `${mock.url}/v1`, [Symbol.asyncDispose]: () => mock.stop() };
}

interface AimockRequest {
  messages?: { role: string; content: unknown }[];
  tools?: { function: { name: string; parameters: JsonObject } }[];
}

const aimockVersion = '1.43.0';

/** LiteLLM's proxy, in front of another server's model. */
export async function liteLlm(behind: { baseUrl: string; model: string; key: string }): Promise<RealServer> {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-litellm-'));
  const port = await freePort();
  const parameters = {
    model: `openai/${behind.model}`,
    api_base: behind.baseUrl,
    api_key: behind.key,
  };
  const config = {
    model_list: [{ model_name: 'proxied', litellm_params: parameters }],
    general_settings: { dangerously_permit_weak_or_unset_master_key: true },
  };
  const file = join(folder, 'config.yaml');
  writeFileSync(file, JSON.stringify(config));
  const program = ['--config', file, '--port', String(port), '--host', '127.0.0.1'];
  return serving('litellm', program, { port, ready: 'Uvicorn running on', folder });
}

/** @param how.ready what it prints once it listens */
async function serving(
  program: string,
  args: readonly string[],
  { port, ready, folder }: { port: number; ready: string; folder: string },
): Promise<RealServer> {
  const bin = join(await installed(readFileSync(requirements), installPython), 'bin');
  // An open standard input keeps it running.
  const running = execa(join(bin, program), args, { stdin: 'pipe', reject: false, all: true });
  await new Promise<void>((resolve, reject) => {
    let printed = '';
    running.all.on('data', (bytes) => {
      printed += bytes;
      if (printed.includes(ready)) resolve();
    });
    void running.then(() => reject(new Error(`${program} ended: ${printed}`)));
  });
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    async [Symbol.asyncDispose]() {
      running.kill();
      await running;
      rmSync(folder, { recursive: true });
    },
  };
}

const requirements = join(here, 'requirements.txt');

async function installPython(folder: string): Promise<void> {
  await execa('python3', ['-m', 'venv', folder]);
  const pip = join(folder, 'bin/pip');
  await execa(pip, ['install', '--quiet', '--no-compile', '--requirement', requirements]);
}

/** A folder in which this is installed, once for each of its versions. */
export async function installed(
  version: string | Buffer,
  install: (folder: string) => Promise<unknown>,
): Promise<string> {
  const hash = createHash('sha256').update(version).digest('hex').slice(0, 12);
  const folder = join(here, `../../../node_modules/.cache/model-servers-${hash}`);
  const done = join(folder, 'installed');
  if (existsSync(done)) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await install(folder);
  writeFileSync(done, '');
  return folder;
}
