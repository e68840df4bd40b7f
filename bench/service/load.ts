import { Pool } from 'undici';

export interface Load {
  url: string;
  path: string;
  headers: Record<string, string>;
  /** The body of the n-th request; undefined if there is nothing left to send. */
  body(request: number): string | undefined;
  connections: number;
  /** Stops after this many milliseconds. */
  forMs: number;
}

export interface Measured {
  requestsPerSecond: number;
  latenciesMs: number[];
  /** The body of the last answer. */
  answerBytes: number;
}

/**
 * Sends requests over keep-alive connections, one after another on each connection. Throws if an answer is
 * not 200.
 */
export async function measure({ url, path, headers, body, connections, forMs }: Load): Promise<Measured> {
  const pool = new Pool(url, { connections, pipelining: 1 });
  const latenciesMs: number[] = [];
  let answerBytes = 0;
  let next = 0;
  const startedAt = performance.now();
  const send = async () => {
    while (performance.now() - startedAt < forMs) {
      const text = body(next++);
      if (text === undefined) throw new Error(`nothing is left to send to ${path}`);
      const answer = await ask(pool, { path, headers, body: text });
      answerBytes = answer.bytes;
      latenciesMs.push(answer.ms);
    }
  };
  try {
    await Promise.all(Array.from({ length: connections }, send));
  } finally {
    await pool.close();
  }
  const seconds = (performance.now() - startedAt) / 1000;
  return { requestsPerSecond: latenciesMs.length / seconds, latenciesMs, answerBytes };
}

/** Sends one request. Throws if the answer is not 200. */
export async function ask(
  pool: Pool,
  { path, headers, body }: { path: string; headers: Record<string, string>; body: string },
): Promise<{ ms: number; bytes: number }> {
  const sentAt = performance.now();
  const answer = await pool.request({ method: 'POST', path, headers, body });
  const received = await answer.body.arrayBuffer();
  if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode}`);
  return { ms: performance.now() - sentAt, bytes: received.byteLength };
}

/** `share` is 0.5 for the median. */
export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
