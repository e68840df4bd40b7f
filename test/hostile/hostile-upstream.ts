import type { ServerResponse } from 'node:http';
import { type TestUpstream, testUpstream } from '../gateway/test-upstream.ts';

/** What a hostile model answers, by the first word of the question's last message. */
const answers: Record<string, (response: ServerResponse) => Promise<void>> = {
  /** One event of a stream that has no end of line. */
  'endless-event': (response) =>
    stream(response, 'data: {"choices":[{"delta":{"content":"', 'x'.repeat(64 * 1024), 30 * 2 ** 20),
  /** An answer in one piece with as many values as its bytes can carry. */
  'many-values': (response) => whole(response, '[', '[],', 12 * 2 ** 20),
  /** Pieces of one byte. */
  crumbs: (response) => stream(response, '', '.', 40_000),
  /** A large answer that takes no time to make. */
  large: (response) => stream(response, '', `data: {"choices":[]}${' '.repeat(64 * 1024)}\n\n`, 64 * 2 ** 20),
};

export function hostileUpstream(): Promise<TestUpstream> {
  return testUpstream(async (response, { body }) => {
    const document = body.length < 100_000 ? JSON.parse(body.toString()) : {};
    const word = document.messages?.at(-1)?.content ?? 'brief';
    const answer = answers[word];
    if (answer) return answer(response);
    return response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        choices: [{ message: { role: 'assistant', content: 'brief' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 1 },
      }),
    );
  });
}

async function stream(response: ServerResponse, first: string, piece: string, bytes: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  await repeat(response, first, piece, bytes);
}

async function whole(response: ServerResponse, first: string, piece: string, bytes: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' });
  await repeat(response, first, piece.repeat(20_000), bytes);
}

async function repeat(response: ServerResponse, first: string, piece: string, bytes: number): Promise<void> {
  response.on('error', () => undefined);
  if (first !== '') response.write(first);
  for (let sent = 0; sent < bytes && !response.destroyed; sent += piece.length) {
    if (response.write(piece)) continue;
    const { promise, resolve } = Promise.withResolvers<void>();
    response.once('drain', resolve).once('close', resolve);
    await promise;
    response.off('drain', resolve).off('close', resolve);
  }
  response.end();
}
