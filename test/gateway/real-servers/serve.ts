import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa, execaSync } from 'execa';
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
  const bin = await installed();
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

/** Installs the servers once for each state of their requirements. Returns the folder of their programs. */
async function installed(): Promise<string> {
  const requirements = join(here, 'requirements.txt');
  const version = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const folder = join(here, `../../../node_modules/.cache/model-servers-${version}`);
  const bin = join(folder, 'bin');
  const done = join(folder, 'installed');
  if (existsSync(done)) return bin;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await execa('python3', ['-m', 'venv', folder]);
  await execa(join(bin, 'pip'), ['install', '--quiet', '--no-compile', '--requirement', requirements]);
  writeFileSync(done, '');
  return bin;
}
