import { expect, test } from 'vitest';
import { integrations, openTestService } from './test-service.ts';

test('a write appends a version and old versions stay as they were', async () => {
  await using service = openTestService();
  const first = await service.succeed('prompts.write', { id: 'greeting', content: 'Hello\0\ud800' });
  expect(first).toEqual({
    id: 'greeting',
    version: 1,
    content: 'Hello\0\ud800',
    createdAt: '2026-03-01T12:00:00.000Z',
    channels: [],
  });
  const second = await service.succeed('prompts.write', { id: 'greeting', content: 'Good day' });
  expect(second.version).toBe(2);
  expect(await service.succeed('prompts.get', { id: 'greeting' })).toEqual(second);
  expect(await service.succeed('prompts.get', { id: 'greeting', version: 1 })).toEqual(first);
});

test('a channel gives the version it was last pointed to, forwards and back', async () => {
  await using service = openTestService();
  for (const content of ['one', 'two']) await service.succeed('prompts.write', { id: 'p', content });
  for (const version of [2, 1, 1]) {
    const promoted = { id: 'p', channel: 'live', version };
    expect(await service.succeed('prompts.promote', promoted)).toEqual(promoted);
    const prompt = await service.succeed('prompts.get', { id: 'p', channel: 'live' });
    expect([prompt.version, prompt.channels]).toEqual([version, ['live']]);
  }
});

test('without a version or channel, a prompt is what its default channel points to', async () => {
  await using service = openTestService();
  const received = async () => (await service.succeed('prompts.get', { id: 'p' })).content;
  await service.succeed('prompts.write', { id: 'p', content: 'one' });
  expect(await received()).toBe('one');
  await service.succeed('prompts.write', { id: 'p', content: 'two' });
  expect(await received()).toBe('two');
  await service.succeed('prompts.promote', { id: 'p', channel: 'production', version: 1 });
  expect(await received()).toBe('one');
  await service.succeed('prompts.write', { id: 'p', content: 'three' });
  expect(await received()).toBe('one');
  await service.succeed('prompts.promote', { id: 'p', channel: 'beta', version: 3 });
  expect(await received()).toBe('one');
  await service.succeed('prompts.promote', { id: 'p', channel: 'production', version: 2 });
  expect(await received()).toBe('two');
});

test('a prompt that has channels, but not the default one, is not found without a channel', async () => {
  await using service = openTestService();
  await service.succeed('prompts.write', { id: 'p', content: 'one' });
  for (const channel of ['live', 'beta']) {
    await service.succeed('prompts.promote', { id: 'p', channel, version: 1 });
  }
  expect(await service.ask('prompts.get', { id: 'p' })).toMatchObject({
    status: 404,
    body: { message: 'The prompt p has no channel production. Its channels: beta, live.' },
  });
  expect((await service.succeed('prompts.get', { id: 'p', version: 1 })).version).toBe(1);
  expect((await service.succeed('prompts.get', { id: 'p', channel: 'beta' })).version).toBe(1);
});

test('a prompt, version or channel that does not exist is not found', async () => {
  await using service = openTestService();
  await service.succeed('prompts.write', { id: 'p', content: 'one' });
  for (const [operation, request] of [
    ['prompts.get', { id: 'q' }],
    ['prompts.get', { id: 'p', version: 2 }],
    ['prompts.get', { id: 'p', channel: 'live' }],
    ['prompts.promote', { id: 'p', channel: 'live', version: 2 }],
    ['prompts.promote', { id: 'q', channel: 'live', version: 1 }],
    ['prompts.promote', { id: 'p', channel: 'live', version: Number.MAX_SAFE_INTEGER }],
  ] as const) {
    expect(await service.ask(operation, request)).toMatchObject({ status: 404, body: { _tag: 'NotFound' } });
  }
});

test('asking for a version and a channel at once is refused', async () => {
  await using service = openTestService();
  expect(await service.issues('prompts.get', { id: 'p', version: 1, channel: 'live' })).toEqual([
    { _tag: 'Refinement', path: ['channel'], message: expect.any(String) },
  ]);
});

test('the integrations are the ones the service was opened with', async () => {
  await using service = openTestService();
  expect(await service.succeed('connectors.integrations', {})).toEqual(integrations);
});

test('the content of a prompt is bounded, and the refusal says where', async () => {
  await using service = openTestService();
  const prompt = (length: number) => ({ id: 'long', content: 'x'.repeat(length) });
  expect(await service.issues('prompts.write', prompt(2 ** 19 + 1))).toMatchObject([{ path: ['content'] }]);
  expect(await service.succeed('prompts.write', prompt(2 ** 19))).toMatchObject({ version: 1 });
});

test('a prompt has at most 100 channels, and each of them can still be pointed elsewhere', async () => {
  await using service = openTestService();
  for (const content of ['one', 'two']) await service.succeed('prompts.write', { id: 'p', content });
  const promoted = (channel: string) => ({ id: 'p', channel, version: 2 });
  for (let count = 0; count < 100; count += 1)
    await service.succeed('prompts.promote', { id: 'p', channel: `channel-${count}`, version: 1 });
  expect(await service.ask('prompts.promote', promoted('one-more'))).toMatchObject({ status: 409 });
  expect(await service.succeed('prompts.promote', promoted('channel-7'))).toEqual(promoted('channel-7'));
});
