import { expect, test } from 'vitest';
import type { RunParts } from '../../src/client/pages/page-reader.ts';
import { clientOf } from './client-of.ts';
import { json, scriptedService, text } from './scripted-service.ts';

const trial = { id: 't', ordinal: 0, status: 'queued' };
const good = { id: 'good', trials: [trial], setup: { prompt: 'p' } };

/** The runs that a client reads from a page, and what it noted about them. */
async function read(runs: unknown[], parts: RunParts = 'results') {
  const page = json(200, { page: 1, pageSize: 20, total: runs.length, runs });
  await using service = await scriptedService(page);
  const notes: string[] = [];
  await using client = clientOf(service, { note: (message) => notes.push(message) });
  const list = async () => Array.fromAsync(client.runs({ caseId: 'c' }, { parts: parts as 'results' }));
  return { runs: await list(), notes, list };
}

test.each([
  ['a number for a status', { ...good, id: 'odd', status: 7 }, { id: 'odd', trials: [trial] }],
  ['an odd field of a trial', { id: 'odd', trials: [{ ...trial, usage: 'much' }] }, { trials: [trial] }],
  ['a trial without an ordinal', { id: 'odd', trials: [{ id: 'x' }, trial] }, { trials: [trial] }],
  ['a trial that is no object', { id: 'odd', trials: [null, trial, 3] }, { trials: [trial] }],
  ['trials that are no list', { id: 'odd', trials: 'three' }, { id: 'odd' }],
  [
    'an odd field deep in a validation',
    { id: 'odd', trials: [{ ...trial, validations: [{}] }] },
    { trials: [trial] },
  ],
])('%s hides neither its run nor the others', async (_, odd, kept) => {
  const { runs, notes } = await read([good, odd, { ...good, id: 'last' }]);
  expect(runs.map(({ id }) => id)).toEqual(['good', 'odd', 'last']);
  expect(runs[1]).toMatchObject(kept);
  expect(runs[1]?.trials?.[0]?.usage).toBeUndefined();
  expect(notes).toEqual([expect.stringMatching(/^the service lists parts of run odd .*\n {2}\S+: /s)]);
});

test.each([
  ['without an id', { trials: [] }],
  ['that is no object', 'run'],
])('a run %s is passed over with one message, however often it is listed', async (_, odd) => {
  const { runs, notes, list } = await read([good, odd]);
  expect(runs.map(({ id }) => id)).toEqual(['good']);
  await list().catch(() => undefined);
  expect(notes).toHaveLength(1);
});

test('a setup that cannot be read is left for the code that names its run', async () => {
  const { runs, notes } = await read([{ ...good, setup: 7 }], 'setup');
  expect(runs).toMatchObject([{ id: 'good', setup: 7 }]);
  expect(notes).toEqual([]);
});

test.each([
  ['an empty object', json(200, {})],
  ['no body', text(204, '')],
])('a promotion answered with %s is a success', async (_, answer) => {
  await using service = await scriptedService(answer);
  await using client = clientOf(service);
  await expect(
    client.call('prompts.promote', { id: 'p', channel: 'production', version: 1 }),
  ).resolves.toEqual({});
});
