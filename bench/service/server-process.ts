import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A server in its own process, so that the load does not share its event loop. */
export interface ServerProcess extends AsyncDisposable {
  url: string;
  pid: number;
}

export async function startServer(script: string, ...parameters: string[]): Promise<ServerProcess> {
  const child = fork(fileURLToPath(new URL(script, import.meta.url)), parameters);
  const [url] = await Promise.race([
    once(child, 'message', { signal: AbortSignal.timeout(20_000) }),
    once(child, 'exit').then(([code]) => {
      throw new Error(`${script} ended with ${code} before it listened`);
    }),
  ]);
  return {
    url: String(url),
    pid: child.pid ?? 0,
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit', { signal: AbortSignal.timeout(20_000) });
      child.disconnect();
      await ended;
    },
  };
}
