import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('./service-program.ts', import.meta.url));

/** The service in a process of its own, to be killed. */
export interface ServiceProcess extends AsyncDisposable {
  post(operation: string, body: unknown): Promise<{ status: number; body: unknown }>;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
}

/** With `fileBlocks`, no file of its can grow beyond so many KiB: writes fail as they do on a full disk. */
export async function startServiceProcess(
  folder: string,
  key: string,
  { fileBlocks }: { fileBlocks?: number } = {},
): Promise<ServiceProcess> {
  // A limit alone would end the process with SIGXFSZ; ignored, the write fails.
  const limit = fileBlocks === undefined ? '' : `trap '' XFSZ; ulimit -f ${fileBlocks};`;
  const child = spawn('bash', ['-c', `${limit} exec "$0" "$@"`, process.execPath, program, folder, key], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const gone = once(child, 'exit');
  const [url] = await Promise.race([
    once(child, 'message', { signal: AbortSignal.timeout(60_000) }),
    gone.then(([code, signal]) => {
      throw new Error(`the service ended with ${code ?? signal} before it listened`);
    }),
  ]);
  async function kill() {
    child.kill('SIGKILL');
    await gone;
  }
  return {
    async post(operation, body) {
      const answer = await fetch(`${url}/v1/${operation}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(60_000),
      });
      return { status: answer.status, body: await answer.json() };
    },
    kill,
    [Symbol.asyncDispose]: kill,
  };
}
