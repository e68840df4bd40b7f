import { describe, expect, test } from 'vitest';
import { isObject, type JsonObject, objectsOf } from '../../../src/gateway/wires/lenient.ts';
import type { Wire } from '../../../src/suite/model-config.ts';
import { recordedRequests } from '../../runners/recorded-requests.ts';
import { place } from '../gateway-fixture.ts';
import { chatAnswer, json } from '../test-upstream.ts';

/** What a server says to a conversation that it does not take. */
type Template = (body: JsonObject) => string | false | undefined;

const messagesOf = (body: JsonObject) => objectsOf(body.messages);
const rolesOf = (body: JsonObject) => messagesOf(body).map(({ role }) => String(role));
const withoutSystem = (body: JsonObject) => {
  const [first, ...rest] = messagesOf(body);
  return first?.role === 'system' ? rest : messagesOf(body);
};

/** The ids of calls in any wire. */
function idsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(idsIn);
  if (!isObject(value)) return [];
  const own = [value.tool_call_id, value.call_id, value.tool_use_id];
  if (value.type === 'tool_use' || isObject(value.function)) own.push(value.id);
  return [...own.filter((id) => typeof id === 'string'), ...Object.values(value).flatMap(idsIn)];
}

const badId = (body: JsonObject) =>
  idsIn(body.messages ?? body.input).find((id) => !/^[a-zA-Z0-9]{9}$/.test(id));
const userAfterTool = (body: JsonObject) =>
  rolesOf(body).some((role, at, all) => role === 'user' && all[at - 1] === 'tool');

/** Chat templates, and checks before them, as servers have them. */
const templates: Record<string, Template> = {
  "Mistral's ids": (body) => {
    const id = badId(body);
    return id !== undefined && `Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`;
  },
  "Mistral's order": (body) => userAfterTool(body) && "Unexpected role 'user' after role 'tool'",
  'turns between which tools do not count': (body) =>
    withoutSystem(body)
      .filter(({ role }) => role !== 'tool')
      .some(({ role }, at, all) => role === 'user' && all[at - 1]?.role === 'user') &&
    'Conversation roles must alternate user/assistant/user/assistant/...',
  "Mistral's turns": (body) => {
    const turns = withoutSystem(body).filter(
      ({ role, tool_calls }) => role === 'user' || (role === 'assistant' && !tool_calls),
    );
    return (
      turns.some(({ role }, at) => (role === 'user') !== (at % 2 === 0)) &&
      'After the optional system message, conversation roles must alternate user/assistant/user/assistant/...'
    );
  },
  'no two of a role': (body) =>
    withoutSystem(body).some(({ role }, at, all) => role !== 'tool' && role === all[at - 1]?.role) &&
    'Conversation roles must alternate user/assistant/user/assistant/...',
  'no system': (body) => rolesOf(body).includes('system') && 'System role not supported',
  'one system': (body) =>
    rolesOf(body).some((role, at) => role === 'system' && at > 0) &&
    'System message must be at the beginning.',
  'no tool': (body) => rolesOf(body).includes('tool') && 'Only user and assistant roles are supported!',
  'a user at the end': (body) => rolesOf(body).at(-1) !== 'user' && 'The last message must be from user',
  'Gemma, which has neither system nor tool': (body) => {
    if (rolesOf(body).includes('system')) return 'System role not supported';
    const isOff = messagesOf(body).some(({ role }, at) => (role === 'user') !== (at % 2 === 0));
    return isOff && 'Conversation roles must alternate user/assistant/user/assistant/...';
  },
  'no images': (body) =>
    JSON.stringify(body).includes('image_url') &&
    'This model has no image input: At most 0 image(s) may be provided.',
  strings: (body) =>
    messagesOf(body).some(({ content }) => Array.isArray(content)) &&
    'messages[1].content: invalid type: sequence, expected a string',
};

/** All that the conversation says, in its order. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (!isObject(value)) return [];
  return [value.content, value.text, value.function, value.arguments].flatMap(textsIn);
}

/** All over the wire that the server speaks, and one over each other: real-requests.test.ts translates the rest. */
const ownWires = ['claude-code', 'codex', 'gemini-cli'];
const chat = recordedRequests().filter(({ cli, wire }) => wire === 'openai-chat' || ownWires.includes(cli));

describe.each(Object.entries(templates))('a server with a strict template: %s', (_, template) => {
  test.each(chat)('answers $cli, which asks over $wire', async ({ wire, body }) => {
    await using at = await place({ model: { wire: 'openai-chat' } }, (response, received) => {
      const says = template(JSON.parse(`${received.body}`));
      const refusal = { object: 'error', message: says, type: 'BadRequestError', param: null, code: 400 };
      return (says ? json(400, refusal) : json(200, chatAnswer))(response, received);
    });
    const asked = {
      path: pathOf(wire),
      headers: at.agent,
      body: wire === 'gemini' ? body : { ...body, model: 'big', stream: false },
    };
    expect(await at.sandbox.ask(asked)).toMatchObject({ status: 200 });
    const [first] = at.upstream.received;
    const taken = at.upstream.received.at(-1);
    // It is remembered.
    const before = at.upstream.received.length;
    expect(await at.sandbox.ask(asked)).toMatchObject({ status: 200 });
    expect(at.upstream.received).toHaveLength(before + 1);
    expect(`${at.upstream.received.at(-1)?.body}`).toBe(`${taken?.body}`);
    // Everything is still said.
    const said = textsIn(JSON.parse(`${taken?.body}`).messages).join('\n');
    for (const text of textsIn(JSON.parse(`${first?.body}`).messages)) expect(said).toContain(text);
  });
});

/** What servers of other wires refuse, and what takes its place. */
const ofWires: [string, Wire, Template, string][] = [
  [
    'ids over Responses',
    'openai-responses',
    (body) => badId(body) && 'Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.',
    'long_call_ids',
  ],
  [
    'ids over Messages',
    'anthropic-messages',
    (body) => badId(body) && 'Tool call IDs should be alphanumeric strings with length 9!',
    'long_call_ids',
  ],
  [
    'a second system text over Responses',
    'openai-responses',
    ({ input, instructions }) => {
      const all = [...(instructions ? [{ role: 'developer' }] : []), ...objectsOf(input)];
      return (
        all.some(({ role }, at) => /developer|system/.test(`${role}`) && at > 0) &&
        'System message must be at the beginning.'
      );
    },
    'late_system',
  ],
  [
    'a list as system text',
    'anthropic-messages',
    ({ system }) => Array.isArray(system) && 'system: Input should be a valid string',
    'system_list',
  ],
  [
    'roles in a row over Messages',
    'anthropic-messages',
    (body) =>
      rolesOf(body).some((role, at, all) => role === all[at - 1]) &&
      'messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row',
    'repeated_role',
  ],
  [
    'what the user says beside results',
    'anthropic-messages',
    (body) =>
      messagesOf(body).some(
        ({ content }) =>
          objectsOf(content).some(({ type }) => type === 'tool_result') &&
          objectsOf(content).some(({ type }) => type === 'text'),
      ) && "Unexpected role 'user' after role 'tool'",
    'user_after_tool',
  ],
];

const beside: JsonObject[] = [
  { role: 'user', content: 'Go on.' },
  { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
  {
    role: 'user',
    content: [
      { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'red' }] },
      { type: 'text', text: 'Be brief.' },
    ],
  },
];

test.each(ofWires)('%s are asked for in another form', async (_, wire, template, name) => {
  const requests = recordedRequests().filter((one) => one.wire === wire);
  const messages = [{ role: 'user', content: 'Hello.' }, ...beside];
  const bodies = [
    ...requests.map(({ body }) => body),
    ...(wire === 'anthropic-messages' ? [{ max_tokens: 1000, messages }] : []),
  ];
  let refused = 0;
  for (const body of bodies) {
    await using at = await place({ model: { wire } }, (response, received) => {
      const says = template(JSON.parse(`${received.body}`));
      if (says) refused += 1;
      const answer =
        wire === 'openai-responses'
          ? { object: 'response', status: 'completed', output: [] }
          : { type: 'message', role: 'assistant', content: [], stop_reason: 'end_turn' };
      return (says ? json(400, { error: { message: says } }) : json(200, answer))(response, received);
    });
    const asked = { path: pathOf(wire), headers: at.agent, body: { ...body, model: 'big', stream: false } };
    expect(await at.sandbox.ask(asked)).toMatchObject({ status: 200 });
    const paths = (await at.session.account()).exchanges[0]?.losses?.map(({ path }) => path);
    if (at.upstream.received.length > 1) expect(paths).toContain(name);
  }
  expect(refused).toBeGreaterThan(0);
});

test('the same id of a call becomes the same nine characters, in each request, and no other id does', async () => {
  await using at = await place({ model: { without: ['long_call_ids'] } }, json(200, chatAnswer));
  const call = (id: string) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } });
  const messages = ['call_1', 'abcDEF123', 'call_2'].flatMap((id) => [
    { role: 'assistant', content: '', tool_calls: [call(id)] },
    { role: 'tool', tool_call_id: id, content: id },
  ]);
  const user = { role: 'user', content: 'hello' };
  for (const sent of [messages.slice(0, 2), messages])
    await at.sandbox.ask({ headers: at.agent, body: { model: 'big', messages: [user, ...sent] } });
  const [first = [], second = []] = at.upstream.received.map(({ body }) =>
    idsIn(JSON.parse(`${body}`).messages),
  );
  expect(second.slice(0, 2)).toEqual(first);
  expect(second[2]).toBe('abcDEF123');
  expect(new Set(second).size).toBe(3);
  for (const id of second) expect(id).toMatch(/^[a-zA-Z0-9]{9}$/);
  expect((await at.session.account()).exchanges[0]?.losses).toMatchObject([{ path: 'long_call_ids' }]);
});

function pathOf(wire: Wire): string {
  if (wire === 'gemini') return '/v1beta/models/big:generateContent';
  return {
    'openai-chat': '/v1/chat/completions',
    'openai-responses': '/v1/responses',
    'anthropic-messages': '/v1/messages',
  }[wire];
}
