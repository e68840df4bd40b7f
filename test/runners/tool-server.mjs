import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

/**
 * A tool server (MCP) with one tool, which greets by the name that its environment gives it. It stands alone.
 * It speaks over stdio; with a port as second argument it speaks streamable HTTP at /mcp and server-sent
 * events at /sse, and greets by what a header of the request gives it.
 */
const greet = {
  name: 'greet',
  description: 'Greets.',
  inputSchema: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
};

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'greeter', version: '1.0.0' },
  }),
  'tools/list': () => ({ tools: [greet] }),
  'tools/call': ({ arguments: given }, greeting) => ({
    content: [{ type: 'text', text: `${greeting}, ${given.to}, said ${process.argv[2]}` }],
  }),
  ping: () => ({}),
};

/** The answer to a message; undefined for a notification. */
function answerTo({ id, method, params }, greeting) {
  if (id === undefined) return undefined;
  const result = answers[method]?.(params ?? {}, greeting);
  const answer = result === undefined ? { error: { code: -32601, message: 'unknown' } } : { result };
  return JSON.stringify({ jsonrpc: '2.0', id, ...answer });
}

async function bodyOf(request) {
  let text = '';
  for await (const piece of request) text += piece;
  return JSON.parse(text);
}

/** Clients of server-sent events by their ids. */
const streams = new Map();

async function serve(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  const greeting = request.headers['x-greeting'];
  if (request.method === 'GET' && pathname === '/sse') {
    const id = String(streams.size);
    streams.set(id, response);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`event: endpoint\ndata: /messages?id=${id}\n\n`);
    return;
  }
  if (request.method !== 'POST') {
    response.writeHead(405).end();
    return;
  }
  const answer = answerTo(await bodyOf(request), greeting);
  if (pathname === '/messages') {
    response.writeHead(202).end();
    if (answer) streams.get(searchParams.get('id'))?.write(`event: message\ndata: ${answer}\n\n`);
  } else if (pathname !== '/mcp') response.writeHead(404).end();
  else if (answer) response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  else response.writeHead(202).end();
}

if (process.argv[3] === undefined) {
  for await (const line of createInterface({ input: process.stdin })) {
    const answer = answerTo(JSON.parse(line), process.env.GREETING);
    if (answer) console.log(answer);
  }
} else createServer(serve).listen(Number(process.argv[3]), '127.0.0.1');
