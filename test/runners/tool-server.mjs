import { createInterface } from 'node:readline';

/** A tool server (MCP) over stdio with one tool, which greets by the name that its environment gives it. It stands alone. */
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
  'tools/call': ({ arguments: given }) => ({
    content: [{ type: 'text', text: `${process.env.GREETING}, ${given.to}, said ${process.argv[2]}` }],
  }),
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const result = answers[method]?.(params ?? {});
  const answer = result === undefined ? { error: { code: -32601, message: 'unknown' } } : { result };
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
}
