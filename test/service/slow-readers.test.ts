import fc from 'fast-check';
import { expect, test } from 'vitest';
import { setupOf, setupPieces } from '../../src/service/record/setup.ts';
import {
  onlyRun,
  openTestService,
  report,
  startRequest,
  startRun,
  type TestService,
} from './test-service.ts';

const text = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('{{a}}', '\\{{a}}', '{{ b }}', '{{c}}', '\ud83d'),
    ),
  )
  .map((parts) => parts.join(''));
const suites = fc.record({ id: fc.string(), name: fc.string(), prompt: text });
const cases = fc.record(
  {
    id: fc.string(),
    name: fc.string(),
    prepare: fc.record({ name: fc.string(), source: text }),
    source: fc.constant({ kind: 'empty' as const }),
    verify: text,
    validator: fc.record(
      { name: fc.string(), source: text, sourceFiles: fc.array(fc.record({ path: text, content: text })) },
      { requiredKeys: ['name', 'source'] },
    ),
    variables: fc.record({ a: text, b: fc.jsonValue() }, { requiredKeys: [] }),
  },
  { requiredKeys: ['id', 'name'] },
);

test('the pieces of a setup are the JSON text of the whole', () => {
  fc.assert(
    fc.property(suites, cases, (suite, definition) => {
      const whole = JSON.parse(JSON.stringify(setupOf(suite, definition)));
      expect(JSON.parse([...setupPieces(suite, definition)].join(''))).toEqual(whole);
    }),
  );
});

const long = '{{a}}'.repeat(1000);
const variables = { a: '😀x\u0001'.repeat(4000) };

test('a text that its variables make long is written in small pieces, wherever they cut it', () => {
  const suite = { id: 's', name: 'S', prompt: long };
  const pieces = [...setupPieces(suite, { id: 'c', name: 'C', variables })];
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(512 * 1024);
  expect(JSON.parse(pieces.join(''))).toEqual({ prompt: variables.a.repeat(1000) });
});

/** Asks for the runs so many times, and reads no answer. */
async function unread(service: TestService, count: number, signal: AbortSignal): Promise<number[]> {
  const { url } = await service.service.listen();
  const ask = () =>
    fetch(`${url}/v1/evals.runs.list`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ caseId: 'csv' }),
      signal,
    });
  return (await Promise.all(Array.from({ length: count }, ask))).map(({ status }) => status);
}

/** Bytes outside the heap that six answers take which nobody reads. */
async function heldUnread(service: TestService): Promise<number> {
  const before = process.memoryUsage().arrayBuffers;
  const gone = new AbortController();
  expect(await unread(service, 6, gone.signal)).toEqual(Array(6).fill(200));
  const held = process.memoryUsage().arrayBuffers - before;
  gone.abort();
  return held;
}

const MiB = 1024 * 1024;

test('answers that nobody reads hold little of long setups', async () => {
  await using service = openTestService();
  const definition = {
    id: 'csv',
    name: 'CSV',
    prepare: { name: 'p', source: long },
    verify: long,
    variables,
  };
  const suite = { id: 's', name: 'S', prompt: long };
  await service.succeed('evals.start', startRequest({ suite, cases: [definition] }));
  // Each page has setups of 130 MB.
  expect(await heldUnread(service)).toBeLessThan(100 * MiB);
  // Of one key, eight such answers are in flight at a time.
  const gone = new AbortController();
  const statuses = await unread(service, 12, gone.signal);
  gone.abort();
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(4);
});

test('answers that nobody reads hold little of long trials, and such a trial is listed as it was reported', async () => {
  await using service = openTestService();
  const id = await startRun(service);
  const output = `${'é😀x'.repeat(1_000_000)}.`;
  const { trial } = report(id);
  const events = [...trial.events, { _tag: 'command', command: 'cat', output }];
  await service.succeed('evals.reportTrial', { id, trial: { ...trial, events } });
  expect(JSON.stringify((await onlyRun(service)).trials?.[0])).toContain(output);
  expect(await heldUnread(service)).toBeLessThan(70 * MiB);
});
