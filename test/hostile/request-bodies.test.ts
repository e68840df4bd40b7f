import { expect, test } from 'vitest';
import { place, question } from '../gateway/gateway-fixture.ts';
import { chatAnswer, json } from '../gateway/test-upstream.ts';

/**
 * An agent writes a request that the gateway reads in one way and its model's server in another. Servers
 * differ: some take the last of two members of one name, some ignore case or underscores, some replace
 * damaged UTF-8, some read the charset that a header names.
 */

const paths = { chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages' };
const wire = ['openai-chat', 'openai-responses', 'anthropic-messages'];
const answered = json(200, chatAnswer);

/** `body` may hold members beside the model, or be the whole text. */
type Attack = [name: keyof typeof paths, body: string | Buffer];

const of = (members: string) => `{"model":"big",${members}}`;
const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))));

const attacks: Record<string, Attack> = {
  'a hosted tool in a repeated member': ['chat', of('"tools":[],"tools":[{"type":"web_search"}]')],
  'a hosted tool in a repeated type': ['messages', of('"tools":[{"type":"custom","type":"web_search_1"}]')],
  'a repeated type, written with an escape': [
    'responses',
    of('"tools":[{"type":"function","\\u0074ype":"mcp"}]'),
  ],
  'a type in capitals beside the type': ['chat', of('"tools":[{"type":"function","Type":"web_search"}]')],
  'a type in capitals alone': ['messages', of('"tools":[{"Type":"web_search_20250305","name":"a"}]')],
  'a type in capitals in a group': [
    'responses',
    of('"tools":[{"type":"namespace","tools":[{"type":"function","TYPE":"mcp"}]}]'),
  ],
  'tools with the long s': ['chat', of('"toolſ":[{"type":"web_search"}]')],
  'a member that is written in camel case': ['chat', of('"webSearchOptions":{}')],
  'servers in camel case': ['messages', of('"mcpServers":[{"type":"url","url":"https://a.example"}]')],
  'a model with a zero byte in its name': ['chat', of('"model\\u0000":"other"')],
  'a model with a lone surrogate in its name': ['chat', of('"model\\ud800":"other"')],
  'a repeated role far down': [
    'messages',
    of('"messages":[{"role":"user","content":[{"type":"text","text":"a","type":"image"}]}]'),
  ],
  'repeated stream options': [
    'chat',
    of('"stream":true,"stream_options":{"include_usage":true,"include_usage":false}'),
  ],
  'stream options in camel case': ['chat', of('"stream":true,"stream_options":{"includeUsage":false}')],
  'a stream that is asked for by a number': ['chat', of('"stream":1')],
  'a background that is asked for by a text': ['responses', of('"background":"true"')],
  'a repeated member in the input of a tool': [
    'messages',
    of('"messages":[{"role":"user","content":[{"type":"tool_use","input":{"a":1,"a":2}}]}]'),
  ],
  'a prototype': ['chat', of('"messages":[{"__proto__":{"tools":[{"type":"web_search"}]}}]')],
  'UTF-7': ['chat', '+AHsAIg-model+ACI-:+ACI-other+ACIAfQ-'],
  'a byte order mark': ['chat', bytes([0xef, 0xbb, 0xbf], of('"n":1'))],
  'UTF-16': ['chat', Buffer.from(of('"n":1'), 'utf16le')],
  'a byte that is no UTF-8': ['chat', bytes('{"model":"big","messages":"', [0xff], '"}')],
  'an overlong quote': ['chat', bytes('{"model":"big","user":"a', [0xc0, 0xa2], ',\\"model\\":\\"x"}')],
  'a surrogate in UTF-8': ['chat', bytes('{"model":"big","user":"', [0xed, 0xa0, 0x80], '"}')],
  'a comment': ['chat', '{"model":"big"/*,"model":"other"*/}'],
  'a comma too many': ['chat', '{"model":"big",}'],
  'two documents': ['chat', '{"model":"big"}{"model":"other"}'],
  'ten thousand levels': ['chat', of(`"messages":${'['.repeat(10_000)}${']'.repeat(10_000)}`)],
  'ten million lists': ['chat', of(`"messages":[${'[],'.repeat(10_000_000)}[]]`)],
};

test.for(Object.entries(attacks))('%s is refused', async ([, [name, body]]) => {
  await using at = await place({ model: { wire } }, answered);
  const headers = { ...at.agent, 'content-type': 'application/json' };
  expect(await at.sandbox.ask({ path: paths[name], headers, body })).toMatchObject({ status: 400 });
  expect(at.upstream.received).toHaveLength(0);
});

test.for([
  'application/json;charset=UTF-16',
  'application/json; charset="utf-8"; charset=utf-7',
  'text/plain; charset=utf-7',
  'application/merge-patch+json',
])('a body that is said to be %s is refused', async (type) => {
  await using at = await place({}, answered);
  const headers = { ...at.agent, 'content-type': type };
  expect(await at.sandbox.ask({ headers, body: question })).toMatchObject({ status: 415 });
  expect(at.upstream.received).toHaveLength(0);
});

test.for([
  'application/json',
  'application/json; charset=utf-8',
  'Application/JSON;charset="UTF-8"',
  undefined,
])('a body that is said to be %s reaches the model as application/json', async (type) => {
  await using at = await place({}, answered);
  const headers = { ...at.agent, ...(type !== undefined && { 'content-type': type }) };
  expect(await at.sandbox.ask({ headers, body: question })).toMatchObject({ status: 200 });
  expect(at.upstream.received[0]?.headers['content-type']).toBe('application/json');
});

test('what only the agent and its tools read may use any names, and reaches the model byte for byte', async () => {
  await using at = await place({ model: { wire, model: undefined } }, answered);
  const free =
    '{"id":1, "ID":2,"Type":"x","type":"y","model\\u0000":[{"__proto__":1,"\\ud800":2}],"tools":7}';
  const bodies: [keyof typeof paths, string][] = [
    ['messages', `"tools":[{"name":"a","input_schema":{"properties":${free}}}],"metadata":${free}`],
    ['messages', `"messages":[{"role":"user","content":[{"type":"tool_use","input":${free}}]}]`],
    ['chat', `"tools":[{"type":"function","function":{"name":"a","parameters":${free}}}]`],
    ['chat', `"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":${free}}}`],
    ['responses', `"tools":[{"type":"function","name":"a","parameters":${free}}],"client_metadata":${free}`],
  ];
  for (const [name, members] of bodies) {
    const body = of(members);
    const answer = await at.sandbox.ask({ path: paths[name], headers: at.agent, body });
    expect(answer, body).toMatchObject({ status: 200 });
    expect(at.upstream.received.at(-1)?.body.toString()).toBe(body);
  }
});
