import { expect, test } from 'vitest';
import { type Place, place } from './gateway-fixture.ts';
import { chatAnswer, json } from './test-upstream.ts';

const paths = { chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages' };
const wire = ['openai-chat', 'openai-responses', 'anthropic-messages'];

/** What would run at the provider, or reach the network from there. */
const hosted: [keyof typeof paths, object][] = [
  ['chat', { web_search_options: {} }],
  ['chat', { plugins: [{ id: 'web' }] }],
  ['chat', { tools: [{ type: 'function', function: {} }, { type: 'web_search' }] }],
  ['chat', { tools: [{ type: 'builtin_function', function: { name: '$web_search' } }] }],
  ...[
    'web_search',
    'web_search_preview',
    'web_search_2026_01_01',
    'file_search',
    'computer_use_preview',
    'code_interpreter',
    'mcp',
    'image_generation',
    'not_known_yet',
  ].map((type): [keyof typeof paths, object] => ['responses', { tools: [{ type: 'function' }, { type }] }]),
  ['responses', { tools: [{ type: 'namespace', tools: [{ type: 'function' }, { type: 'mcp' }] }] }],
  ['responses', { tools: [{ type: 'shell', environment: { type: 'container_auto' } }] }],
  ['responses', { tools: [{ type: 7 }] }],
  ['responses', { prompt: { id: 'pmpt_1' } }],
  ...['web_search_20260101', 'web_fetch_20260101', 'code_execution_20260101', 'mcp_toolset'].map(
    (type): [keyof typeof paths, object] => ['messages', { tools: [{ type }] }],
  ),
  ['messages', { mcp_servers: [{ type: 'url', url: 'https://elsewhere.example' }] }],
];

const own: [keyof typeof paths, object][] = [
  ['chat', { tools: [{ type: 'function', function: { name: 'web_search' } }, { type: 'custom' }] }],
  ['chat', { tools: null, web_search_options: null }],
  [
    'responses',
    { tools: ['function', 'custom', 'local_shell', 'apply_patch', 'shell'].map((type) => ({ type })) },
  ],
  ['responses', { tools: [{ type: 'namespace', tools: [{ type: 'function' }] }], prompt: null }],
  [
    'messages',
    { tools: [{ name: 'web_search' }, { type: 'custom' }, { type: 'bash_20250124' }], mcp_servers: [] },
  ],
  ['messages', { tools: [{ type: 'computer_20250124' }, { type: 'text_editor_20250728' }] }],
];

const ask = (at: Place, [name, body]: [keyof typeof paths, object]) =>
  at.sandbox.ask({ path: paths[name], headers: at.agent, body: { model: 'big', ...body } });

test('tools that run at the provider are refused, with how to allow them', async () => {
  await using at = await place({ model: { wire } }, json(200, chatAnswer));
  for (const each of hosted) {
    const answer = await ask(at, each);
    expect(answer.status, JSON.stringify(each)).toBe(400);
    expect(answer.body.error.message).toContain('hostedTools: allow');
  }
  expect(at.upstream.received).toHaveLength(0);
});

test('tools that the sandbox runs itself pass', async () => {
  await using at = await place({ model: { wire } }, json(200, chatAnswer));
  for (const each of own) expect((await ask(at, each)).status, JSON.stringify(each)).toBe(200);
});

test('a model whose provider may run tools takes them all', async () => {
  await using at = await place({ model: { wire, hostedTools: 'allow' } }, json(200, chatAnswer));
  for (const each of [...hosted, ...own])
    expect((await ask(at, each)).status, JSON.stringify(each)).toBe(200);
});

test('a response in the background, which nobody could meter, is refused', async () => {
  await using at = await place({ model: { wire, hostedTools: 'allow' } }, json(200, chatAnswer));
  expect(await ask(at, ['responses', { background: true }])).toMatchObject({ status: 400 });
});
