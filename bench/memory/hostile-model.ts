import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An OpenAI-compatible server on the loopback that sends hostile answers. */
export interface HostileModel extends AsyncDisposable {
  /** The `baseUrl` for a model. */
  url: string;
}

const mebibyte = 2 ** 20;
/** How many milliseconds an endless stream lasts. */
const endlessMs = 60_000;
/** The largest question that is read, in bytes; a larger one gets the brief answer. */
const questionBytes = 64 * 1024;
const content = (text: string) => `data: {"choices":[{"index":0,"delta":{"content":"${text}"}}]}\n\n`;

/** The answers, by the first word of the question. */
const answers: Readonly<Record<string, (response: ServerResponse) => Promise<void>>> = {
  endless: (response) => send(response, 'text/event-stream', '', content('x'.repeat(8192))),
  huge: (response) =>
    send(response, 'application/json', '{"choices":[{"message":{"content":"', 'x'.repeat(65536), {
      bytes: 100 * mebibyte,
    }),
  event: (response) =>
    send(response, 'text/event-stream', 'data: {"choices":[{"delta":{"content":"', 'x'.repeat(65536), {
      bytes: 50 * mebibyte,
    }),
  crumbs: (response) => send(response, 'text/event-stream', '', '.', { bytes: 100_000 }),
  drip: (response) => send(response, 'text/event-stream', '', content('.'), { pauseMs: 500 }),
  deep: (response) => send(response, 'application/json', '', '['.repeat(65536), { bytes: 12 * mebibyte }),
  values: (response) =>
    send(response, 'application/json', '[', '[],'.repeat(20_000), { bytes: 12 * mebibyte }),
};

export async function openHostileModel(): Promise<HostileModel> {
  const server = createServer((request, response) => {
    response.on('error', () => undefined);
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const hostile = answers[wordOf(await questionOf(request))];
  if (hostile) return hostile(response);
  const message = { role: 'assistant', content: 'brief' };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage }));
}

async function questionOf(request: IncomingMessage): Promise<string> {
  let question = '';
  for await (const chunk of request)
    if (question.length < questionBytes) question += (chunk as Buffer).toString();
  return question;
}

function wordOf(question: string): string {
  try {
    return String(JSON.parse(question).messages.at(-1).content);
  } catch {
    return 'brief';
  }
}

interface Length {
  bytes?: number;
  /** The pause between two pieces. */
  pauseMs?: number;
}

/** Sends a beginning and then the same piece repeatedly, as fast as the client reads. */
async function send(
  response: ServerResponse,
  type: string,
  first: string,
  piece: string,
  { bytes = Number.POSITIVE_INFINITY, pauseMs }: Length = {},
): Promise<void> {
  response.writeHead(200, { 'content-type': type });
  if (first !== '') response.write(first);
  const until = performance.now() + endlessMs;
  for (let sent = 0; sent < bytes && performance.now() < until && !response.destroyed; sent += piece.length) {
    const taken = response.write(piece);
    if (pauseMs !== undefined) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    else if (!taken) await drained(response);
  }
  response.end();
}

async function drained(response: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  response.once('drain', resolve).once('close', resolve);
  await promise;
  response.off('drain', resolve).off('close', resolve);
}
