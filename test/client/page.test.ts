import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { serviceAnswers } from '../../src/bounds/service.ts';
import { readPage } from '../../src/client/pages/page-reader.ts';
import { clientOf, errorOf } from './client-of.ts';
import { dropDuringAnswer, json, type Step, scriptedService, text } from './scripted-service.ts';
import { testClock } from './test-clock.ts';

const trialJson = '{"id":"t","ordinal":0,"status":"queued"}';
const trial = (ordinal: number) => ({ id: `t${ordinal}`, ordinal, status: 'queued' });
const full = (id: string) => ({
  id,
  setup: { prompt: `Do ${id}.` },
  costs: {
    allocatedUsd: 1,
    components: [{ classification: 'actual', component: 'judge', usd: 1, detail: {} }],
  },
  trials: [
    {
      ...trial(0),
      modelMs: 7,
      trajectory: [{ _tag: 'command', command: 'ls', output: '}]"' }],
      validations: [{ id: 'v', index: 0, name: 'v', exitCode: 0, output: { text: 'x' } }],
    },
  ],
});
const page = (...runs: unknown[]) => ({ page: 1, pageSize: 20, total: runs.length, runs });

/** Sends the head, then what `send` writes. */
function streamed(send: (response: ServerResponse) => void): Step {
  return (response) => send(response.writeHead(200, { 'content-type': 'application/json' }));
}

test('of a run only the parts that the caller reads are kept', async () => {
  await using service = await scriptedService(json(200, page(full('r'))));
  await using client = clientOf(service);
  const brief = { id: 'r', trials: [trial(0)] };
  const read = async (parts?: 'setup' | 'results') =>
    (await client.page({ caseId: 'c' }, { parts: parts as 'results' })).runs;
  expect(await read()).toEqual([brief]);
  expect(await read('setup')).toEqual([{ ...brief, setup: { prompt: 'Do r.' } }]);
  expect(await read('results')).toEqual([
    {
      id: 'r',
      costs: { allocatedUsd: 1, components: [{ classification: 'actual', component: 'judge', usd: 1 }] },
      trials: [{ ...trial(0), modelMs: 7, validations: [{ id: 'v', index: 0, name: 'v', exitCode: 0 }] }],
    },
  ]);
});

test('the parts are kept of the runs that the caller chooses, and the others are listed without them', async () => {
  await using service = await scriptedService(json(200, page(full('a'), full('b'))));
  await using client = clientOf(service);
  const runs = client.runs({ caseId: 'c' }, { parts: 'setup', of: ({ id }) => id === 'b' });
  expect((await Array.fromAsync(runs)).map(({ setup }) => setup?.prompt)).toEqual([undefined, 'Do b.']);
});

test('a page that breaks off is read again, from its beginning', async () => {
  const whole = JSON.stringify(page(full('a'), full('b')));
  await using service = await scriptedService(
    dropDuringAnswer(whole),
    text(200, whole.slice(0, -1)),
    text(200, `${whole}}`),
    text(200, '<!doctype html>', { 'content-type': 'text/html' }),
    text(200, whole),
  );
  const clock = testClock();
  await using client = clientOf(service, { clock });
  expect((await Array.fromAsync(client.runs({ caseId: 'c' }))).map(({ id }) => id)).toEqual(['a', 'b']);
  expect(service.received).toHaveLength(5);
});

test('a compressed page, which nobody asked for, is not JSON', async () => {
  await using service = await scriptedService(
    text(200, Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]), { 'content-encoding': 'gzip' }),
  );
  await using client = clientOf(service, { retry: { attempts: 1 } });
  expect(await errorOf(client.page({ caseId: 'c' }))).toMatchObject({ code: 'CLIENT_ANSWER_UNDECODABLE' });
});

test('a page of another shape is explained path by path', async () => {
  await using service = await scriptedService(json(200, { page: 1, pageSize: '20', runs: {}, total: 0 }));
  await using client = clientOf(service, { retry: { attempts: 1 } });
  const { message } = await errorOf(client.page({ caseId: 'c' }));
  expect(message).toMatch(/\n {2}pageSize: .*expected number/);
  expect(message).toMatch(/\n {2}runs: .*expected array/);
});

const part = ' '.repeat(16 * 1024 * 1024);

/** A page of which a part arrives each time a test says so. More than fits between service and client. */
function halting() {
  const opened = Promise.withResolvers<ServerResponse>();
  const step = streamed((response) => opened.resolve(response));
  const send = async () => {
    const response = await opened.promise;
    if (!response.write(part)) await once(response, 'drain');
  };
  return { step, send, end: async () => (await opened.promise).end(JSON.stringify(page({ id: 'a' }))) };
}

test('as long as bytes of a page arrive, the deadline of an attempt does not end it', async () => {
  const { step, send, end } = halting();
  await using service = await scriptedService(step);
  const clock = testClock();
  await using client = clientOf(service, { clock });
  const read = client.page({ caseId: 'c' });
  for (let arrived = 1; arrived <= 3; arrived += 1) {
    await send();
    clock.expire(100_000);
    await new Promise(setImmediate);
  }
  await end();
  expect((await read).runs).toEqual([{ id: 'a' }]);
  expect(service.received).toHaveLength(1);
});

test('a page of which nothing more arrives is given up at the deadline of the attempt, and read again', async () => {
  const { step, send } = halting();
  await using service = await scriptedService(step, json(200, page({ id: 'a' })));
  const clock = testClock();
  await using client = clientOf(service, { clock });
  const read = client.page({ caseId: 'c' });
  await send();
  clock.expire(100_000);
  // The deadline had been renewed, so it passes a second time.
  await new Promise(setImmediate);
  clock.expire(100_000);
  expect((await read).runs).toEqual([{ id: 'a' }]);
});

test('a page of which bytes arrive for ever is given up at its own deadline', async () => {
  const { step, send } = halting();
  await using service = await scriptedService(step);
  const clock = testClock();
  await using client = clientOf(service, { clock });
  const error = errorOf(client.page({ caseId: 'c' }));
  await send();
  clock.expire(serviceAnswers.time.page);
  expect(await error).toMatchObject({ code: 'CLIENT_CALL_DEADLINE', deadlineMs: serviceAnswers.time.page });
  await expect.poll(() => service.open.size).toBe(0);
});

test('a page that is too large is cut off and not read again, and says what to do', async () => {
  await using service = await scriptedService(
    streamed((response) => {
      const more = () => {
        while (response.writable && response.write(part));
        if (response.writable) response.once('drain', more);
      };
      more();
    }),
  );
  await using client = clientOf(service);
  const error = await errorOf(client.page({ caseId: 'c' }));
  expect(error).toMatchObject({
    code: 'CLIENT_ANSWER_TOO_LARGE',
    message: expect.stringMatching(/answer to evals.runs.list is larger than \d+ MiB/),
    hint: expect.stringMatching(/fewer trials.*--max-old-space-size/),
  });
  expect(service.received).toHaveLength(1);
  await expect.poll(() => service.open.size).toBe(0);
});

/** What is read of a page with these runs after the first and before the last. */
function pageWith(runs: string) {
  const body = `{"page":1,"pageSize":20,"total":9,"runs":[{"id":"first"}${runs},{"id":"last"}]}`;
  return readPage(Buffer.from(body), {}, (quoted) => quoted);
}

function readWith(runs: string) {
  const reading = pageWith(runs);
  if (reading._tag !== 'read') throw new Error('it cannot be read');
  const { page, unread, passedOver } = reading;
  return { runs: page.runs, ids: page.runs.map(({ id }) => id), unread, passedOver };
}

test.each([
  ['millions of values', `,{"id":"x","trials":[{}${',{}'.repeat(20_000_000)}]}`, 'heavy'],
  ['a thousand levels', `,{"id":"x","setup":${'['.repeat(1000)}${']'.repeat(1000)}}`, 'heavy'],
  ['no end', ',{"id":"x"', 'broken'],
])('a page with %s is not read', (_, runs, tag) => {
  expect(pageWith(runs)).toEqual({ _tag: tag });
});

test('names that JavaScript knows are names like others', () => {
  const { runs, passedOver } = readWith(',{"id":"x","__proto__":{"status":7},"constructor":1}');
  expect(runs[1]).toStrictEqual({ id: 'x' });
  expect(passedOver).toEqual([]);
});

test('a run whose id has no text of its own is passed over like others that cannot be read', () => {
  const { ids, passedOver } = readWith(',{"id":{"toString":1}},{"id":[{"toString":1}]}');
  expect(ids).not.toContain(undefined);
  expect(passedOver).toEqual([
    expect.stringContaining('run {"toString":1} in a form that cannot be read'),
    expect.stringContaining('run [{"toString":1}] in a form that cannot be read'),
  ]);
});

test.each([
  ['trials', `"trials":[{"id":7}${',{"id":7}'.repeat(60)}]`],
  ['parts of its costs', `"costs":{"components":[{}${',{}'.repeat(60)}]}`],
])('of a run with many wrong %s, the message does not say how many more there are', (_, wrong) => {
  const body = `{"page":1,"pageSize":20,"total":1,"runs":[{"id":"x",${wrong}}]}`;
  const reading = readPage(Buffer.from(body), { parts: 'results' }, (quoted) => quoted);
  if (reading._tag !== 'read') throw new Error('it cannot be read');
  expect(reading.passedOver).toEqual([expect.stringMatching(/left out:(\n {2}.*){20}\n {2}and more$/)]);
});

test('a run with 150,000 trials is read without them, so they count as not known', () => {
  const { runs, passedOver } = readWith(`,{"id":"x","trials":[{}${`,${trialJson}`.repeat(150_000)}]}`);
  expect(runs).toEqual([{ id: 'first' }, { id: 'x' }, { id: 'last' }]);
  expect(passedOver).toEqual(['the service lists trials of run x, too many to be read; left out']);
});

test('of a page of 300,000 runs, some are left out', () => {
  const { ids, unread, passedOver } = readWith(',{"id":"x"}'.repeat(300_000));
  expect(ids.length).toBe(serviceAnswers.count.records);
  expect(ids.length + unread).toBe(300_002);
  expect(passedOver).toEqual([expect.stringMatching(/^the service lists a page with too many runs/)]);
});

test('a page of nothing but unreadable runs tells of at most a hundred', () => {
  const odd = Array.from({ length: 1000 }, (_, index) => `,{"id":"${index}","status":7}`);
  expect(readWith(odd.join('')).passedOver).toHaveLength(serviceAnswers.count.passedOver);
});
