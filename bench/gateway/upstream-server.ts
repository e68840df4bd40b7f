import { createServer, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * The upstream of both sides: an OpenAI-like server that answers at once, with a short answer, with a stream,
 * or with the number of bytes in `node upstream-server.ts BYTES`. It reads just enough of a request to know
 * which. Writes its URL to the parent.
 */
const bigText = Buffer.alloc(Number(process.argv[2] ?? 0), 'x');
const usage = '"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}';
const answer = (content: string) =>
  '{"id":"1","object":"chat.completion","model":"bench","choices":[{"index":0,"finish_reason":"stop",' +
  `"message":{"role":"assistant","content":"${content}"}}],${usage}}`;
const [bigHead = '', bigTail = ''] = answer('|').split('|');

const server = createServer((request, response) => {
  let asked = '';
  request.on('data', (chunk: Buffer) => {
    if (asked.length < 1024) asked += chunk.toString('latin1', 0, 1024);
  });
  request.on('end', () => {
    if (asked.includes('"content":"stream"')) return void stream(response);
    if (asked.includes('"content":"download"')) return big(response);
    const body = answer('yes');
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
  });
});

/** The rest of a stream is sent long after its beginning has arrived. */
async function stream(response: ServerResponse): Promise<void> {
  const event = (choice: string) =>
    `data: {"id":"1","object":"chat.completion.chunk","model":"bench","choices":[{"index":0,${choice}}]}\n\n`;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(event('"delta":{"content":"yes"}'));
  await delay(10);
  response.write(event('"delta":{},"finish_reason":"stop"'));
  response.end(`data: {"id":"1","object":"chat.completion.chunk","choices":[],${usage}}\n\ndata: [DONE]\n\n`);
}

function big(response: ServerResponse): void {
  const length = bigHead.length + bigText.length + bigTail.length;
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length });
  response.write(bigHead);
  response.write(bigText);
  response.end(bigTail);
}

// On a busy machine a kept connection may wait for longer than Node's 5 s, and its end would end the client.
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address && typeof address === 'object') process.send?.(`http://127.0.0.1:${address.port}`);
});
process.once('disconnect', () => process.exit(0));
