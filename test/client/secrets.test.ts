import { inspect } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { quoteWithout } from '../../src/client/options.ts';
import { KnownKeys } from '../../src/redaction/redactor.ts';
import { apiKey, clientOf, errorOf, reportRequest } from './client-of.ts';
import { json, type Step, scriptedService, text } from './scripted-service.ts';
import { testClock } from './test-clock.ts';

/** Answers that repeat the key they were sent, each in another way. */
const echoes: Record<string, Step> = {
  'in a message': json(403, { _tag: 'Forbidden', message: `the key ${apiKey} may not` }),
  'in a tag': json(403, { _tag: apiKey, message: '' }),
  'in an issue': json(400, {
    _tag: 'HttpApiDecodeError',
    message: '',
    issues: [{ _tag: apiKey, path: [apiKey, 'x'], message: apiKey }],
  }),
  'in WWW-Authenticate': text(401, '', { 'www-authenticate': `Bearer key="${apiKey}"` }),
  'in a page': text(200, `<h1>${apiKey}</h1>`),
  'in half a JSON': text(200, JSON.stringify({ key: apiKey }).slice(0, -1)),
  'in a redirect': text(302, '', { location: `https://${encodeURIComponent(apiKey)}.example/` }),
  'in the content type': text(200, 'x', { 'content-type': `text/${apiKey}` }),
  'in a wrong shape': json(200, { credential: apiKey }),
  'in bytes that are not HTTP': (response) => response.socket?.end(`${apiKey} HTTP\r\n\r\n`),
};

for (const [where, step] of Object.entries(echoes)) {
  test(`a key that the service repeats ${where} stays out of the error`, async () => {
    await using service = await scriptedService(step);
    await using client = clientOf(service, { retry: { attempts: 2 } });
    const error = await errorOf(client.call('auth.whoami', {}));
    const shown = inspect(error, { depth: 20, showHidden: true });
    for (const form of [apiKey, encodeURIComponent(apiKey), JSON.stringify(apiKey).slice(1, -1), 'Zq8']) {
      expect(shown).not.toContain(form);
    }
  });
}

test('the key travels in the Authorization header and nowhere else', async () => {
  await using service = await scriptedService(json(200, {}));
  await using client = clientOf(service);
  await client.call('evals.reportTrial', reportRequest);
  const [{ headers, path, body, method } = {}] = service.received;
  expect(method).toBe('POST');
  expect(path).toBe('/v1/evals.reportTrial');
  expect(headers?.authorization).toBe(`Bearer ${apiKey}`);
  expect(headers?.['content-type']).toBe('application/json');
  expect(JSON.parse(body ?? '')).toEqual(reportRequest);
  delete headers?.authorization;
  expect(JSON.stringify([headers, path, body])).not.toContain('Zq8');
});

const modelKey = 'sk-live-Zq9/Xk2mN7vR4';
const keys = new KnownKeys([
  ['MODEL_KEY', modelKey],
  ['the API key', apiKey],
]);

test.each([
  [
    'prompts.write',
    { id: 'p', content: `one\ntwo ${modelKey}` },
    /content holds the key in MODEL_KEY \(line 2, column 5\)/,
  ],
  [
    'prompts.get',
    {
      id: 'p',
      channel: encodeURIComponent(modelKey)
        .toLowerCase()
        .replace('zq9', 'Zq9')
        .replace('xk2mn7vr4', 'Xk2mN7vR4'),
    },
    /channel holds the key in MODEL_KEY/,
  ],
  [
    'prompts.write',
    { id: 'p', content: Buffer.from(`a:${apiKey}`).toString('base64') },
    /content holds the key in the API key/,
  ],
] as const)('a request %s that holds a key is refused, and nothing is sent', async (name, request, where) => {
  await using service = await scriptedService(json(200, {}));
  await using client = clientOf(service, { keys });
  const error = await errorOf(client.call(name, request as never));
  expect(error).toMatchObject({ code: 'CLIENT_REQUEST_HOLDS_KEY', kind: 'input' });
  expect(String(error)).toMatch(where);
  expect(String(error)).not.toContain('Xk2mN7vR4');
  expect(service.received).toEqual([]);
});

test('the key in a variable of a case is refused where it stands, in names as well', () => {
  const cases = [
    { id: 'a', name: 'a' },
    { id: 'b', name: 'b', variables: { deep: [{ [`x${modelKey}`]: 1 }] } },
  ];
  expect(keys.findIn({ cases })).toMatchObject({
    path: ['cases', 1, 'variables', 'deep', 0],
    name: 'MODEL_KEY',
  });
});

test('from a report keys are taken out, and all else is sent', async () => {
  await using service = await scriptedService(json(200, {}));
  await using client = clientOf(service, { keys });
  const { events } = reportRequest.trial;
  const said = `echo ${modelKey.replaceAll('/', '\\/')} ${modelKey}`;
  const command = {
    _tag: 'command' as const,
    command: said,
    startedAtMillis: 1,
    finishedAtMillis: 2,
    exitCode: 0,
  };
  const request = { ...reportRequest, trial: { ...reportRequest.trial, events: [...events, command] } };
  await client.call('evals.reportTrial', request as never);
  const body = JSON.parse(service.received[0]?.body ?? '');
  expect(body).toEqual({
    ...reportRequest,
    trial: {
      ...reportRequest.trial,
      events: [...events, { ...command, command: 'echo [redacted] [redacted]' }],
    },
  });
});

test('a quote never holds the key, wherever it stands and however short the quote is', () => {
  const key = fc.stringMatching(/^[\x21-\x7e]{6,20}$/);
  fc.assert(
    fc.property(key, fc.string(), fc.string(), fc.nat(60), (secret, before, after, limit) => {
      fc.pre(!'[API key]'.includes(secret) && !before.includes(secret) && !after.includes(secret));
      const quoted = quoteWithout(secret)(`${before} ${secret} ${after}`, limit);
      expect(quoted).not.toContain(secret);
    }),
  );
});

for (const [what, key, where] of [
  ['a line break', 'sk_abc\n', 'U+000A, at 7 of 7'],
  ['a space', 'Bearer sk_abc', 'U+0020, at 7 of 13'],
  ['a letter beyond ASCII', 'sk_äbc', 'U+00E4, at 4 of 6'],
  ['nothing in it', '', 'empty'],
] as const) {
  test(`a key with ${what} is an input error that does not show it`, () => {
    const make = () => createClient({ url: 'https://evals.example', apiKey: key, clock: testClock() });
    expect(make).toThrow(expect.objectContaining({ code: 'CLIENT_KEY_INVALID', kind: 'input' }));
    expect(make).toThrow(where);
    expect(make).not.toThrow('abc');
  });
}
