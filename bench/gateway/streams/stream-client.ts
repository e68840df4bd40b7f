import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { StreamOrder, StreamTimes } from './stream-order.ts';

/**
 * Reads streamed answers, on the host and in the sandbox: `node stream-client.ts ORDERS` prints the times of
 * each order. It runs alone, so it imports only Node's own modules and types.
 */
const orders = JSON.parse(process.argv[2] ?? '') as StreamOrder[];
const agent = new Agent({ keepAlive: true });
const all: StreamTimes[] = [];
for (const order of orders) {
  const times: StreamTimes = { firstByteMs: [], endMs: [] };
  for (let asked = 0; asked < order.count; asked++) {
    const startedAt = performance.now();
    let firstAt: number | undefined;
    // An answer that is broken off throws here.
    for await (const _chunk of await ask(order)) firstAt ??= performance.now();
    times.firstByteMs.push((firstAt ?? Number.NaN) - startedAt);
    times.endMs.push(performance.now() - startedAt);
  }
  all.push(times);
}
console.log(JSON.stringify(all));
agent.destroy();

function ask({ origin, path, token, body }: StreamOrder): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  };
  const sent = request(`${origin}${path}`, { method: 'POST', agent, headers });
  sent.on('response', (answer) => {
    if (answer.statusCode === 200) resolve(answer);
    else text(answer).then((said) => reject(new Error(`${answer.statusCode} ${said.slice(0, 500)}`)), reject);
  });
  sent.on('error', reject).end(body);
  return promise;
}
