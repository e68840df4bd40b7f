import { expect, test } from 'vitest';
import { place } from '../gateway/gateway-fixture.ts';
import { chatAnswer, json } from '../gateway/test-upstream.ts';

/**
 * An agent asks its model's provider to do what the sandbox may not: fetch an address, run a tool, use stored
 * content.
 */

const paths = { chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages' };
const wire = ['openai-chat', 'openai-responses', 'anthropic-messages'];
const answered = json(200, chatAnswer);

const elsewhere = 'https://elsewhere.example/?secret';
const said = (content: unknown) => ({ messages: [{ role: 'user', content: [content] }] });

const escapes: [keyof typeof paths, object][] = [
  ['chat', { search_parameters: { mode: 'on' } }],
  ['chat', { enable_search: true }],
  ['chat', { tools: [{ googleSearch: {} }] }],
  ['chat', { tools: [{ type: 'function', function: { name: 'a' }, google_search: {} }] }],
  ['chat', { tools: { type: 'web_search' } }],
  ['chat', said({ type: 'image_url', image_url: { url: elsewhere } })],
  ['chat', said({ type: 'image_url', image_url: elsewhere })],
  ['chat', said({ type: 'text', text: 'a', image_url: { url: elsewhere } })],
  ['chat', said({ image_url: { url: elsewhere } })],
  ['chat', said({ type: 'file', file: { file_id: 'file-1' } })],
  ['messages', { container: 'container_1' }],
  ['messages', { tools: [{ type: 'bash_code_execution_20250825' }] }],
  ['messages', { tools: [{ type: 'tool_search_tool_web_20260101' }] }],
  ['messages', said({ type: 'image', source: { type: 'url', url: elsewhere } })],
  ['messages', said({ type: 'document', source: { type: 'file', file_id: 'file_1' } })],
  ['messages', said({ type: 'tool_result', content: [{ type: 'image', source: { type: 'url' } }] })],
  ['messages', said({ type: 'container_upload', file_id: 'file_1' })],
  ['messages', { messages: [{ role: 'user', content: { type: 'image', source: { type: 'url' } } }] }],
  ['responses', { conversation: 'conv_1' }],
  ['responses', { input: [{ type: 'tool_search_output', tools: [{ type: 'mcp' }] }] }],
  ['responses', { input: [{ type: 'mcp_approval_response', approve: true }] }],
  ['responses', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: elsewhere }] }] }],
  ['responses', { input: [{ role: 'user', content: [{ type: 'input_file', file_url: elsewhere }] }] }],
  [
    'responses',
    { input: [{ type: 'function_call_output', output: [{ type: 'input_file', file_url: elsewhere }] }] },
  ],
];

const inline = 'data:image/png;base64,iVBORw0KGgo=';
const own: [keyof typeof paths, object][] = [
  ['chat', said({ type: 'image_url', image_url: { url: inline } })],
  ['chat', said({ type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,' } })],
  ['messages', said({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBOR' } })],
  ['messages', said({ type: 'tool_use', input: { url: elsewhere, tools: [1], source: { type: 'url' } } })],
  ['messages', said({ type: 'tool_result', content: [{ type: 'tool_reference', tool_name: 'a' }] })],
  ['messages', { tools: [{ type: 'tool_search_tool_regex_20251119', name: 'a' }], container: null }],
  ['responses', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: inline }] }] }],
  ['responses', { input: [{ type: 'tool_search_output', tools: [{ type: 'function', name: 'a' }] }] }],
  ['responses', { input: [{ type: 'reasoning', summary: [], encrypted_content: 'a' }], background: false }],
  ['responses', { input: 'hello', tool_choice: { type: 'allowed_tools', tools: [{ type: 'function' }] } }],
];

test.for(escapes)('%s %o is refused, with how to allow it', async ([name, body]) => {
  await using at = await place({ model: { wire } }, answered);
  const asked = { path: paths[name], headers: at.agent, body: { model: 'big', ...body } };
  const answer = await at.sandbox.ask(asked);
  expect(answer.status).toBe(400);
  expect(answer.body.error.message).toContain('hostedTools: allow');
  expect(at.upstream.received).toHaveLength(0);

  await using allowed = await place({ model: { wire, hostedTools: 'allow' } }, answered);
  expect(await allowed.sandbox.ask({ ...asked, headers: allowed.agent })).toMatchObject({ status: 200 });
});

test.for(own)('%s %o, which stays in the conversation, passes', async ([name, body]) => {
  await using at = await place({ model: { wire } }, answered);
  const asked = { path: paths[name], headers: at.agent, body: { model: 'big', ...body } };
  expect(await at.sandbox.ask(asked)).toMatchObject({ status: 200 });
});

test('a member that Offsite does not know passes only where the model is configured with it', async () => {
  const body = { model: 'big', repetition_detection: { window: 3 } };
  await using at = await place({ model: { hostedTools: 'allow' } }, answered);
  const answer = await at.sandbox.ask({ headers: at.agent, body });
  expect(answer).toMatchObject({ status: 400, body: { error: { code: 'member_unknown' } } });
  expect(answer.body.error.message).toContain('requestMembers');

  await using named = await place({ model: { requestMembers: ['repetition_detection'] } }, answered);
  expect(await named.sandbox.ask({ headers: named.agent, body })).toMatchObject({ status: 200 });
  const twice = { ...body, repetitionDetection: 1 };
  expect(await named.sandbox.ask({ headers: named.agent, body: twice })).toMatchObject({ status: 400 });
});
