import { expect, test } from 'vitest';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import {
  ClientError,
  Conflict,
  DecodeRefusal,
  Forbidden,
  NotFound,
  ServiceRefusal,
  Unauthorized,
} from '../../src/client/refusal.ts';
import { clientOf, errorOf, reportRequest, startRequest } from './client-of.ts';
import { json, scriptedService, text, whoami } from './scripted-service.ts';

const kinds = [
  { status: 401, tag: 'Unauthorized', type: Unauthorized, code: 'SERVICE_UNAUTHORIZED' },
  { status: 403, tag: 'Forbidden', type: Forbidden, code: 'SERVICE_FORBIDDEN' },
  { status: 404, tag: 'NotFound', type: NotFound, code: 'SERVICE_NOT_FOUND' },
  { status: 409, tag: 'Conflict', type: Conflict, code: 'SERVICE_CONFLICT' },
] as const;

for (const { status, tag, type, code } of kinds) {
  test(`${status} ${tag} is an error of its own, thrown at once`, async () => {
    await using service = await scriptedService(
      json(status, { _tag: tag, message: 'Not this one.', more: 1 }),
    );
    await using client = clientOf(service);
    const error = await errorOf(client.call('evals.start', startRequest));
    for (const base of [type, ServiceRefusal, ClientError, OffsiteError]) expect(error).toBeInstanceOf(base);
    expect(error).toMatchObject({ status, tag, code, said: 'Not this one.', kind: 'input', attempts: 1 });
    expect(error.message).toBe(`evals.start: the service answered ${status} ${tag}: Not this one.`);
    expect(service.received).toHaveLength(1);
  });

  test(`${status} without a body, or with one that has no tag, is ${tag} too`, async () => {
    await using service = await scriptedService(text(status, ''), json(status, { error: 'no' }));
    await using client = clientOf(service);
    expect(await errorOf(client.call('auth.whoami', {}))).toBeInstanceOf(type);
    expect(await errorOf(client.call('auth.whoami', {}))).toBeInstanceOf(type);
  });
}

test('a decode error prints every issue with its path', async () => {
  await using service = await scriptedService(
    json(400, {
      _tag: 'HttpApiDecodeError',
      message: 'The body did not match.',
      issues: [
        { _tag: 'Type', path: ['trial', 'events', 3, 'command'], message: 'Expected string' },
        { _tag: 'Missing', path: ['trial', { _tag: 'symbol', key: 'outcome' }], message: 'is missing' },
        { _tag: 'Brand', path: [], message: 'a kind of issue we do not know', extra: true },
      ],
    }),
  );
  await using client = clientOf(service);
  const error = await errorOf(client.call('evals.reportTrial', reportRequest));
  expect(error).toBeInstanceOf(DecodeRefusal);
  expect(error.issues).toMatchObject([
    { tag: 'Type', path: 'trial.events[3].command', message: 'Expected string' },
    { tag: 'Missing', path: 'trial.outcome' },
    { tag: 'Brand', path: '' },
  ]);
  expect(error.message).toBe(
    [
      'evals.reportTrial: the service answered 400 HttpApiDecodeError: The body did not match.',
      '  trial.events[3].command: Expected string',
      '  trial.outcome: is missing',
      '  body: a kind of issue we do not know',
    ].join('\n'),
  );
});

test('a decode error with many issues prints the first ones, and how many more there are', async () => {
  const issues = Array.from({ length: 25 }, (_, index) => ({
    _tag: 'Type',
    path: ['cases', index],
    message: 'no',
  }));
  await using service = await scriptedService(
    json(400, { _tag: 'HttpApiDecodeError', message: 'no', issues }),
  );
  await using client = clientOf(service);
  const error = await errorOf(client.call('evals.start', startRequest));
  expect(error.message).toMatch(/(\n {2}cases\[\d+\]: no){20}\n {2}and 5 more$/);
});

test('a decode error whose issues cannot be read still says what the service said', async () => {
  await using service = await scriptedService(
    json(400, { _tag: 'HttpApiDecodeError', message: 'no', issues: 'many' }),
  );
  await using client = clientOf(service);
  const error = await errorOf(client.call('evals.reportTrial', reportRequest));
  expect(error).toBeInstanceOf(DecodeRefusal);
  expect(error).toMatchObject({ said: 'no', issues: [] });
});

test('401 says what WWW-Authenticate says', async () => {
  const header = 'Bearer realm="evals", resource_metadata="https://evals.example/.well-known"';
  await using service = await scriptedService(
    json(401, { _tag: 'Unauthorized', message: 'Unknown key.' }, { 'www-authenticate': header }),
    text(401, '<h1>401</h1>', { 'www-authenticate': header, 'content-type': 'text/html' }),
  );
  await using client = clientOf(service);
  const error = await errorOf(client.call('auth.whoami', {}));
  expect(error).toMatchObject({ authenticate: header });
  expect(error.message).toBe(
    `auth.whoami: the service answered 401 Unauthorized: Unknown key. (WWW-Authenticate: ${header})`,
  );
  expect(await errorOf(client.call('auth.whoami', {}))).toMatchObject({
    name: 'Unauthorized',
    authenticate: header,
  });
});

test('a _tag that we do not know survives', async () => {
  await using service = await scriptedService(json(402, { _tag: 'QuotaSpent', message: 'Nothing left.' }));
  await using client = clientOf(service);
  const error = await errorOf(client.call('auth.whoami', {}));
  expect(error).toMatchObject({
    name: 'ServiceRefusal',
    status: 402,
    tag: 'QuotaSpent',
    code: 'SERVICE_REFUSED',
  });
  expect(error.message).toBe('auth.whoami: the service answered 402 QuotaSpent: Nothing left.');
});

test('an error page that is not the service’s is told apart from its refusal', async () => {
  await using service = await scriptedService(
    text(404, '<h1>No such site</h1>', { 'content-type': 'text/html' }),
  );
  await using client = clientOf(service);
  const error = await errorOf(client.call('auth.whoami', {}));
  expect(error).toMatchObject({ name: 'UndecodableAnswer', status: 404, code: 'CLIENT_ANSWER_UNDECODABLE' });
  expect(error.message).toContain(
    '(404, text/html) is not a documented error; it begins: <h1>No such site</h1>',
  );
});

test('an answer with more than the contract knows keeps all of it, and with less than it needs is refused', async () => {
  const more = { ...whoami, plan: 'free', organization: { ...whoami.organization, seats: [1, null] } };
  const { organization: _, ...less } = whoami;
  await using service = await scriptedService(json(200, more), json(200, less));
  await using client = clientOf(service, { retry: { attempts: 1 } });
  expect(await client.call('auth.whoami', {})).toEqual(more);
  const error = await errorOf(client.call('auth.whoami', {}));
  expect(error.message).toContain('organization: Invalid input: expected object');
});

test('a request the contract does not allow is not sent, and its issues are printed with their paths', async () => {
  await using service = await scriptedService(json(200, {}));
  await using client = clientOf(service);
  const request = structuredClone(reportRequest) as typeof reportRequest & { extra?: number };
  Object.assign(request.trial, {
    events: [
      { _tag: 'Started', model: 'm', sessionId: 's', at: 1 },
      { _tag: 'command', command: 3 },
    ],
  });
  request.extra = 1;
  const error = await errorOf(client.call('evals.reportTrial', request));
  expect(error).toMatchObject({ name: 'RequestInvalid', code: 'CLIENT_REQUEST_INVALID', kind: 'input' });
  expect(error.message).toMatch(/^evals\.reportTrial: the request was not sent:\n/);
  expect(error.message).toContain('\n  trial.events[1].command: Invalid input: expected string');
  expect(error.message).toContain('Unrecognized key: "extra"');

  const tooMany = { ...startRequest, trials: 11 };
  expect((await errorOf(client.call('evals.start', tooMany))).message).toContain('\n  trials: Too big');
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const unwritable = { ...startRequest, cases: [{ id: 'c', name: 'C', variables: { cyclic } }] };
  expect((await errorOf(client.call('evals.start', unwritable))).code).toBe('CLIENT_REQUEST_INVALID');
  expect(service.received).toHaveLength(0);
});
