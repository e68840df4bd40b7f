import { inspect } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { redactionOf } from '../../src/gateway/upstream-failure.ts';
import { key, place, question } from './gateway-fixture.ts';
import { chatAnswer, json, type Step } from './test-upstream.ts';

const inJson = JSON.stringify(key).slice(1, -1);
const forms = [key, inJson, encodeURIComponent(key), '9f8e7d6c5b4a'];

const stream: Step = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const text = `data: ${JSON.stringify({ model: key, error: { message: `no ${key} here` } })}\n\n`;
  for (const byte of Buffer.from(text)) response.write(Buffer.from([byte]));
  response.end();
};

/** Answers that repeat the key they were sent, each in another way. */
const echoes: Record<string, Step> = {
  'in an error': json(401, { error: { message: `Incorrect API key provided: ${key}` } }),
  'in an answer': json(200, { ...chatAnswer, model: key, choices: [key] }),
  'in a stream, a byte at a time': stream,
  'in headers': json(
    400,
    {},
    { 'x-echo': `Bearer ${key}`, 'www-authenticate': key, 'content-type': `a/${encodeURIComponent(key)}` },
  ),
  'in a redirect': json(302, {}, { location: `https://${encodeURIComponent(key)}.example/` }),
  'in bytes that are not HTTP': (response) => response.socket?.end(`${key} HTTP\r\n\r\n`),
  'in a page': (response) => response.writeHead(500, { 'content-type': 'text/html' }).end(`<h1>${key}</h1>`),
  'in half an answer': (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
    response.write(`{"key":"${inJson}"`, () => response.socket?.destroy());
  },
};

for (const [where, step] of Object.entries(echoes)) {
  test(`a key that the upstream repeats ${where} reaches neither sandbox nor record`, async () => {
    const seen: unknown[] = [];
    const observe = (...all: unknown[]) =>
      seen.push(all.map((one) => (Buffer.isBuffer(one) ? `${one}` : one)));
    await using at = await place({ model: { record: 'full' }, session: { observe } }, step);
    const asked = at.sandbox.ask({ headers: at.agent, body: { ...question, stream: true } });
    const answer = await asked.catch((error: unknown) => error);
    const chat = await at.session
      .chat('agent', { messages: [{ from: 'user', text: 'hi' }] }, new AbortController().signal)
      .catch((error: unknown) => error);
    expect(at.upstream.received[0]?.headers.authorization).toBe(`Bearer ${key}`);
    const account = await at.session.account();
    const kept = [...at.kept.values()].map(String);
    const bytes = answer && typeof answer === 'object' && 'bytes' in answer ? String(answer.bytes) : '';
    const shown = inspect([bytes, answer, chat, account, kept, seen], {
      depth: 20,
      showHidden: true,
      maxStringLength: 1e6,
    });
    for (const form of forms) expect(shown.includes(form), form).toBe(false);
    expect(shown).not.toContain(Buffer.from(key).toString('hex').match(/../g)?.join(' '));
  });
}

test('a key is taken out of a stream wherever it is cut, and all other bytes stay and come at once', () => {
  const redaction = redactionOf(key);
  const word = fc.constantFrom(key, inJson, encodeURIComponent(key), 'sk-', 'sk-real', 'text', '\n', 'é');
  fc.assert(
    fc.property(fc.array(word), fc.array(fc.nat(80)), (words, sizes) => {
      const whole = Buffer.from(words.join(''));
      const stream = redaction.stream();
      const out: Buffer[] = [];
      let from = 0;
      for (const size of [...sizes, whole.length]) {
        out.push(stream.push(whole.subarray(from, from + size)));
        from += size;
      }
      out.push(stream.end());
      const said = Buffer.concat(out).toString();
      expect(said).toBe(redaction.text(whole.toString()));
    }),
  );
  expect(redaction.stream().push(Buffer.from('data: hello\n\n')).toString()).toBe('data: hello\n\n');
});

test('a key that is no secret changes nothing', () => {
  const stream = redactionOf('ollama').stream();
  expect(stream.push(Buffer.from('ollama')).toString()).toBe('ollama');
  expect(redactionOf(undefined).text('x')).toBe('x');
});

test('a header whose name holds the key is dropped, whatever its case', async () => {
  const token = 'sk-live-Zq7aB3dE9fGhJkL1mN5pQrStU';
  const names = [`x-${token}`, token.toUpperCase(), `x-${Buffer.from(token).toString('base64url')}`];
  const headers = Object.fromEntries(names.map((name) => [name, 'yes']));
  await using at = await place(
    { gateway: { env: { MODEL_KEY: token } } },
    json(200, chatAnswer, { ...headers, 'x-kept': 'yes' }),
  );
  const answer = await at.sandbox.ask({ headers: at.agent, body: question });
  expect(at.upstream.received[0]?.headers.authorization).toBe(`Bearer ${token}`);
  expect(answer.headers['x-kept']).toBe('yes');
  for (const name of names) expect(answer.headers).not.toHaveProperty([name.toLowerCase()]);
});
