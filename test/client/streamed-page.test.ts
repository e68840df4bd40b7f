import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { serviceAnswers } from '../../src/bounds/service.ts';
import { PageReader } from '../../src/client/pages/page-reader.ts';
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

test('a page that is not JSON from its first bytes on is not read to its end, and is quoted', async () => {
  await using service = await scriptedService(
    streamed((response) => {
      response.write('<h1>Sign in</h1>');
    }),
  );
  await using client = clientOf(service, { retry: { attempts: 1 } });
  const error = await errorOf(client.page({ caseId: 'c' }));
  expect(error).toMatchObject({ code: 'CLIENT_ANSWER_UNDECODABLE', status: 200 });
  expect(error.message).toMatch(/is not JSON; it begins: <h1>Sign in<\/h1>$/);
  await expect.poll(() => service.open.size).toBe(0);
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

/** A page that stops after each run until the test lets it go on, and what the client has read of it. */
function halting() {
  const state = { read: 0, response: undefined as ServerResponse | undefined };
  const step = streamed((opened) => {
    state.response = opened;
    opened.write('{"page":1,"pageSize":20,"runs":[{"id":"0"},');
  });
  const options = { parts: 'setup' as const, of: () => state.read++ >= 0 };
  return { state, step, options };
}

test('as long as bytes of a page arrive, the deadline of an attempt does not end it', async () => {
  const { state, step, options } = halting();
  await using service = await scriptedService(step);
  const clock = testClock();
  await using client = clientOf(service, { clock });
  const read = client.page({ caseId: 'c' }, options);
  for (let run = 1; run <= 3; run += 1) {
    await expect.poll(() => state.read).toBe(run);
    clock.expire(100_000);
    state.response?.write(`{"id":"${run}"},`);
  }
  await expect.poll(() => state.read).toBe(4);
  state.response?.end('{"id":"4"}],"total":5}');
  expect((await read).runs).toHaveLength(5);
  expect(service.received).toHaveLength(1);
});

test('a page of which nothing more arrives is given up at the deadline of the attempt, and read again', async () => {
  const { state, step, options } = halting();
  await using service = await scriptedService(step, json(200, page({ id: 'a' })));
  const clock = testClock();
  await using client = clientOf(service, { clock });
  const read = client.page({ caseId: 'c' }, options);
  await expect.poll(() => state.read).toBe(1);
  clock.expire(100_000);
  // The deadline had been renewed, so it passes a second time.
  await new Promise(setImmediate);
  clock.expire(100_000);
  expect((await read).runs).toEqual([{ id: 'a' }]);
});

test('a page of which bytes arrive for ever is given up at its own deadline', async () => {
  const { state, step, options } = halting();
  await using service = await scriptedService(step);
  const clock = testClock();
  await using client = clientOf(service, { clock });
  const error = errorOf(client.page({ caseId: 'c' }, options));
  await expect.poll(() => state.read).toBe(1);
  clock.expire(serviceAnswers.time.page);
  expect(await error).toMatchObject({ code: 'CLIENT_CALL_DEADLINE', deadlineMs: serviceAnswers.time.page });
  await expect.poll(() => service.open.size).toBe(0);
});

/** A reader of pages, fed with this text and the end of a page. */
function readerOf(...pieces: Iterable<string>[]) {
  const reader = new PageReader({}, (quoted) => quoted);
  for (const piece of [
    '{"page":1,"pageSize":20,"total":9,"runs":[{"id":"first"}',
    ...pieces.flatMap((each) => [...each]),
  ])
    reader.write(Buffer.from(piece));
  reader.write(Buffer.from(',{"id":"last"}]}'));
  const reading = reader.finish();
  if (reading._tag !== 'read') throw new Error('it cannot be read');
  return {
    runs: reading.page.runs,
    ids: reading.page.runs.map(({ id }) => id),
    unread: reading.unread,
    passedOver: reading.passedOver,
  };
}

function* repeated(text: string, times: number) {
  for (let time = 0; time < times; time += 1) yield text;
}

const megabyte = 'x'.repeat(1024 * 1024);

test.each([
  ['a text of 80 MB', [',{"id":"', ...repeated(megabyte, 80), '"}']],
  ['a setup of 300 MB', [',{"id":"x","setup":"', ...repeated(megabyte, 300), '"}']],
])('a run with %s is left out with one message, and the others are read', (_, pieces) => {
  const { ids, unread, passedOver } = readerOf(pieces);
  expect([ids, unread]).toEqual([['first', 'last'], 1]);
  expect(passedOver).toEqual([
    expect.stringMatching(/^the service lists a run that is too large to be read/),
  ]);
});

test.each([
  ['150,000 trials', [',{"id":"x","trials":[{}', ...repeated(`,${trialJson}`.repeat(1000), 150), ']}']],
  [
    'a trial of 300 MB',
    [',{"id":"x","trials":[{"trajectory":["', ...repeated(megabyte, 300), `"]},${trialJson}]}`],
  ],
])('a run with %s is read without its trials, so they count as not known', (_, pieces) => {
  const { runs, passedOver } = readerOf(pieces);
  expect(runs).toEqual([{ id: 'first' }, { id: 'x' }, { id: 'last' }]);
  expect(passedOver).toEqual(['the service lists trials of run x that are too large to be read; left out']);
});

test('a run with 80 MB where nothing is read of it is whole', () => {
  const { ids, unread } = readerOf([',{"id":"x","setup":{"prompt":"', ...repeated(megabyte, 80), '"}}']);
  expect([ids, unread]).toEqual([['first', 'x', 'last'], 0]);
});

test('a page of 300,000 runs is read as far as there is room for them', () => {
  const { ids, unread, passedOver } = readerOf(repeated(',{"id":"x"}'.repeat(1000), 300));
  expect(ids.length).toBe(serviceAnswers.count.records);
  expect(ids.length + unread).toBe(300_002);
  expect(passedOver).toEqual([expect.stringMatching(/^the service lists .* a page with too many runs/)]);
});

test('a page of nothing but unreadable runs tells of at most a hundred', () => {
  const odd = Array.from({ length: 1000 }, (_, index) => `,{"id":"${index}","status":7}`);
  expect(readerOf(odd).passedOver).toHaveLength(serviceAnswers.count.passedOver);
});
