import { expect, test } from 'vitest';
import { clientOf, errorOf, reportRequest, startRequest } from './client-of.ts';
import {
  dropAfterAnswer,
  dropBeforeAnswer,
  dropDuringAnswer,
  json,
  type Step,
  scriptedService,
  text,
  whoami,
} from './scripted-service.ts';
import { testClock } from './test-clock.ts';

const html = text(200, '<!doctype html><h1>Sign in</h1>', { 'content-type': 'text/html; charset=utf-8' });
const halfJson = text(200, '{"organization": {"id"', { 'content-type': 'application/json' });

const transient: Record<string, Step> = {
  'a connection dropped before the answer': dropBeforeAnswer,
  'a connection dropped during the answer': dropDuringAnswer(JSON.stringify(whoami)),
  'a body cut off before its length': (response) => {
    response.writeHead(200, { 'content-length': '1000' }).write('{', () => response.socket?.end());
  },
  'HTML with status 200': html,
  'half a JSON with status 200': halfJson,
  'an empty body with status 200': text(200, ''),
  'bad UTF-8 with status 200': text(200, Buffer.from([0x22, 0xff, 0x22])),
  'another shape with status 200': json(200, { organization: 'acme' }),
  'status 408': text(408, ''),
  'status 429': json(429, { _tag: 'TooMany', message: 'slow down' }),
  'status 500': json(500, { _tag: 'InternalError', message: 'oops' }),
  'status 502 with HTML': text(502, '<h1>Bad gateway</h1>', { 'content-type': 'text/html' }),
  'status 503': text(503, 'busy'),
  'status 504': text(504, ''),
  'bytes that are not HTTP': (response) => response.socket?.end('SSH-2.0-OpenSSH_9.6\r\n'),
};

for (const [fault, step] of Object.entries(transient)) {
  test(`${fault} is got over by asking again`, async () => {
    await using service = await scriptedService(step, json(200, whoami));
    const clock = testClock();
    await using client = clientOf(service, { clock });
    expect(await client.call('auth.whoami', {})).toEqual(whoami);
    expect(service.received).toHaveLength(2);
    expect(clock.waits).toEqual([250]);
  });
}

/** Whether the service may have acted, by fault: where it certainly did not, starting again is safe. */
const certainlyNotActed = ['status 429'];
for (const [fault, step] of Object.entries(transient)) {
  const safe = certainlyNotActed.includes(fault);
  test(`after ${fault}, evals.start ${safe ? 'is repeated: nothing was done' : 'says that its outcome is unknown'}`, async () => {
    const started = { id: 'batch', runs: [] };
    await using service = await scriptedService(step, json(200, started));
    await using client = clientOf(service);
    if (safe) {
      expect(await client.call('evals.start', startRequest)).toEqual(started);
      return;
    }
    const error = await errorOf(client.call('evals.start', startRequest));
    expect(error).toMatchObject({
      name: 'UnknownOutcome',
      code: 'CLIENT_OUTCOME_UNKNOWN',
      kind: 'infrastructure',
    });
    expect(error.message).toMatch(/^evals\.start: nobody knows whether the service did it: /);
    expect(error.hint).toMatch(/List the runs/);
    expect(error.cause).toBeInstanceOf(Error);
    expect(service.received).toHaveLength(1);
  });
}

test('a service that turns a start away with 503 and Retry-After is asked again', async () => {
  await using service = await scriptedService(
    text(503, '', { 'retry-after': '7' }),
    json(200, { id: 'batch', runs: [] }),
  );
  const clock = testClock();
  await using client = clientOf(service, { clock });
  expect(await client.call('evals.start', startRequest)).toMatchObject({ id: 'batch' });
  expect(clock.waits).toEqual([7250]);
});

test('where nothing listens, evals.start is repeated and then says that it was not sent', async () => {
  const gone = await scriptedService();
  await gone[Symbol.asyncDispose]();
  const clock = testClock();
  await using client = clientOf(gone, { clock });
  const error = await errorOf(client.call('evals.start', startRequest));
  expect(error).toMatchObject({
    name: 'ConnectionFailure',
    code: 'CLIENT_UNREACHABLE',
    sent: false,
    attempts: 6,
  });
  expect(error.message).toContain(`cannot connect to ${gone.url}: connect ECONNREFUSED`);
  expect(error.hint).toBe('Is the service running there?');
  expect(clock.waits).toEqual([250, 500, 1000, 2000, 4000]);
});

test('a connection dropped after the answer does not disturb the next calls', async () => {
  await using service = await scriptedService(dropAfterAnswer(200, whoami));
  await using client = clientOf(service);
  for (let call = 0; call < 5; call += 1) {
    expect(await client.call('auth.whoami', {})).toEqual(whoami);
    await expect.poll(() => service.open.size).toBe(0);
  }
});

test('evals.start is never written to a connection that was kept', async () => {
  await using service = await scriptedService(json(200, whoami), json(200, { id: 'batch', runs: [] }));
  await using client = clientOf(service);
  await client.call('auth.whoami', {});
  await client.call('evals.start', startRequest);
  await client.call('evals.start', startRequest);
  expect(service.connected).toBe(3);
});

test('what a service keeps answering is shown, without control characters, and says what to check', async () => {
  await using service = await scriptedService(
    text(200, '<h1>\u001b[31mSign in</h1>', { 'content-type': 'text/html' }),
  );
  await using client = clientOf(service, { retry: { attempts: 2 } });
  const error = await errorOf(client.call('auth.whoami', {}));
  expect(error).toMatchObject({ code: 'CLIENT_ANSWER_UNDECODABLE', status: 200, attempts: 2 });
  expect(error.message).toBe(
    "auth.whoami, attempt 2: the service's answer (200, text/html) is not JSON; it begins: <h1> [31mSign in</h1>",
  );
  expect(error.hint).toMatch(/base address/);
});

test('a redirect is an error that names where it leads, and the key is not sent there', async () => {
  await using elsewhere = await scriptedService(json(200, whoami));
  for (const status of [301, 302, 303, 307, 308]) {
    await using service = await scriptedService(
      text(status, '', { location: `${elsewhere.url}/login?token=1` }),
    );
    await using client = clientOf(service);
    const error = await errorOf(client.call('auth.whoami', {}));
    expect(error).toMatchObject({ code: 'CLIENT_REDIRECTED', status, kind: 'input' });
    expect(error.message).toContain(`a redirect to ${elsewhere.url}; not followed`);
    expect(error.message).not.toContain('token');
  }
  expect(elsewhere.received).toHaveLength(0);
});

test('a start that is answered with 303 may have happened; with 307 it did not', async () => {
  await using service = await scriptedService(
    text(303, '', { location: '/done' }),
    text(307, '', { location: '/there' }),
  );
  await using client = clientOf(service);
  expect(await errorOf(client.call('evals.start', startRequest))).toMatchObject({ name: 'UnknownOutcome' });
  expect(await errorOf(client.call('evals.start', startRequest))).toMatchObject({
    code: 'CLIENT_REDIRECTED',
  });
});

test('an answer larger than 64 MiB is cut off, and its connection closed', async () => {
  await using service = await scriptedService((response) => {
    const chunk = Buffer.alloc(1024 * 1024, ' ');
    const more = () => {
      while (response.writable && response.write(chunk));
      if (response.writable) response.once('drain', more);
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    more();
  });
  await using client = clientOf(service);
  const error = await errorOf(client.call('auth.whoami', {}));
  expect(error).toMatchObject({ code: 'CLIENT_ANSWER_TOO_LARGE' });
  expect(service.received).toHaveLength(1);
  await expect.poll(() => service.open.size).toBe(0);
});

for (const [what, step] of Object.entries({
  'an empty body': text(200, ''),
  '204 without a body': (response) => response.writeHead(204).end(),
  null: json(200, null),
  'plain text': text(201, 'thank you'),
  'an object': json(200, { accepted: true }),
  'an error-like object': json(200, { _tag: 'Whatever' }),
  'an empty page': text(200, '', { 'content-type': 'text/html' }),
} satisfies Record<string, Step>)) {
  test(`a reported trial counts as delivered when the answer is 2xx with ${what}`, async () => {
    await using service = await scriptedService(step);
    await using client = clientOf(service);
    expect(await client.call('evals.reportTrial', reportRequest)).toBeTypeOf('object');
    expect(service.received).toHaveLength(1);
  });
}

test('a reported trial is not delivered to a web page that answers 200 in the service’s place', async () => {
  await using service = await scriptedService(html);
  await using client = clientOf(service, { retry: { attempts: 2 } });
  expect(await errorOf(client.call('evals.reportTrial', reportRequest))).toMatchObject({
    code: 'CLIENT_ANSWER_UNDECODABLE',
  });
});
