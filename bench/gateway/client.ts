import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { ClientOrder, ClientTimes } from './client-order.ts';

/**
 * The client of both sides, on the host and in the sandbox: `node client.ts ORDER`. Sends requests to a model
 * as a harness does, over kept connections, and prints how long they took. It runs alone, so it imports only
 * Node's own modules and types.
 */
const order = JSON.parse(process.argv[2] ?? '') as ClientOrder;
const agent = new Agent({ keepAlive: true, maxSockets: order.parallel });
const small = JSON.stringify({ model: order.model, messages: [{ role: 'user', content: 'small' }] });
const streamed = JSON.stringify({
  model: order.model,
  stream: true,
  messages: [{ role: 'user', content: 'stream' }],
});

// Both ends compile and connect before the measurement starts.
await inParallel(order.calls, order.parallel, call);
const times: ClientTimes = {
  oneMs: await inParallel(order.calls, 1, call),
  parallelMs: await inParallel(order.calls * 2, order.parallel, call),
  firstByteMs: await inParallel(order.streams, 1, firstByte),
  downMs: await inParallel(order.bodies, 1, download),
  upMs: await inParallel(order.bodies, 1, upload),
};
console.log(JSON.stringify(times));
agent.destroy();

/** Milliseconds of each of `count` measurements, `width` at a time. */
async function inParallel(count: number, width: number, measure: () => Promise<number>): Promise<number[]> {
  const measured: number[] = [];
  let begun = 0;
  const work = async () => {
    while (begun < count) {
      begun += 1;
      measured.push(await measure());
    }
  };
  await Promise.all(Array.from({ length: width }, work));
  return measured;
}

async function call(): Promise<number> {
  const startedAt = performance.now();
  await text(await ask(small));
  return performance.now() - startedAt;
}

/** Until the first byte of a streamed answer's body; the upstream sends it at once, and the rest later. */
async function firstByte(): Promise<number> {
  const startedAt = performance.now();
  let firstAt: number | undefined;
  for await (const _chunk of await ask(streamed)) firstAt ??= performance.now();
  return (firstAt ?? Number.NaN) - startedAt;
}

async function download(): Promise<number> {
  const content = 'download';
  const startedAt = performance.now();
  const answer = await ask(JSON.stringify({ model: order.model, messages: [{ role: 'user', content }] }));
  let bytes = 0;
  for await (const chunk of answer) bytes += (chunk as Buffer).length;
  if (bytes < order.bodyBytes) throw new Error(`the answer has ${bytes} bytes`);
  return performance.now() - startedAt;
}

async function upload(): Promise<number> {
  const content = 'x'.repeat(order.bodyBytes);
  const body = JSON.stringify({ model: order.model, messages: [{ role: 'user', content }] });
  const startedAt = performance.now();
  await text(await ask(body));
  return performance.now() - startedAt;
}

function ask(body: string): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const headers = {
    authorization: `Bearer ${order.token}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  };
  const sent = request(`${order.origin}/v1/chat/completions`, { method: 'POST', agent, headers });
  sent.on('response', (answer) => {
    if (answer.statusCode === 200) resolve(answer);
    else text(answer).then((said) => reject(new Error(`${answer.statusCode} ${said.slice(0, 500)}`)), reject);
  });
  sent.on('error', reject).end(body);
  return promise;
}
