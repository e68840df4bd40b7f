import { request } from 'node:http';
import { text } from 'node:stream/consumers';

/** Milliseconds within which a daemon answers unless it is stuck. */
const deadlineMs = 60_000;

/** One request over a Unix socket, and the text of its answer. */
export async function exchange(
  socketPath: string,
  method: string,
  path: string,
): Promise<{ status: number; body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  const asking = request({ socketPath, method, path, signal: AbortSignal.timeout(deadlineMs), agent: false });
  asking.on('error', reject);
  asking.on('response', (response) => {
    text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
  });
  asking.end();
  return promise;
}
