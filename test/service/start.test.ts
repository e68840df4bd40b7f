import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { serviceRequests } from '../../src/bounds/callers.ts';
import { openService, serviceDatabase } from '../../src/service/service.ts';
import { folderForTest, onlyRun, openTestService, startRequest, stillClock } from './test-service.ts';

const { suite } = startRequest();

test('a batch has one run for every case and variant, in the order of the request', async () => {
  await using service = openTestService();
  const { id, runs } = await service.succeed(
    'evals.start',
    startRequest({
      cases: ['csv', 'toml'].map((name) => ({ id: name, name })),
      variants: ['small', 'large'].map((model) => ({ model })),
    }),
  );
  expect(id).toMatch(/^batch_/);
  expect(runs.map(({ caseId, variantIndex }) => [caseId, variantIndex])).toEqual([
    ['csv', 0],
    ['csv', 1],
    ['toml', 0],
    ['toml', 1],
  ]);
  expect(new Set(runs.map((run) => run.id)).size).toBe(4);
});

test('a new run is queued, marked local, and tells what it is to run', async () => {
  await using service = openTestService();
  const { id, runs } = await service.succeed(
    'evals.start',
    startRequest({
      variants: [
        { model: 'small', credentials: { harnessConnectionId: 'command', sandboxConnectionId: 'docker' } },
      ],
      trigger: { url: 'https://ci.example/7' },
    }),
  );
  expect(await onlyRun(service)).toEqual({
    id: runs[0]?.id,
    batchId: id,
    case: { id: 'csv', name: 'CSV' },
    suite: { id: 'parsers', name: 'Parsers' },
    variant: {
      id: expect.stringMatching(/^v_[0-9a-f]{10}$/),
      model: 'small',
      harness: 'command',
      sandbox: 'docker',
    },
    status: 'queued',
    local: true,
    startedAt: '2026-03-01T12:00:00.000Z',
    definitionHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    distribution: { trials: 2, scored: 0, passed: 0, failed: 0, voided: 0 },
    trigger: { source: 'api', url: 'https://ci.example/7' },
    setup: { prompt: 'Mend the parser.' },
    trials: [
      { id: expect.stringMatching(/^trial_.*_0$/), ordinal: 0, status: 'queued' },
      { id: expect.stringMatching(/^trial_.*_1$/), ordinal: 1, status: 'queued' },
    ],
  });
});

test('the setup has the variables of the case in all its texts', async () => {
  await using service = openTestService();
  await service.succeed(
    'evals.start',
    startRequest({
      suite: { id: 's', name: 'S', prompt: 'Mend {{file}}, not \\{{file}} and not {{other}}.' },
      cases: [
        {
          id: 'csv',
          name: 'CSV',
          source: { kind: 'empty' },
          prepare: { name: 'fetch', source: 'fetch {{file}}' },
          verify: 'check {{count}}',
          validator: {
            name: 'v',
            source: 'read("{{file}}")',
            sourceFiles: [{ path: 'lib.js', content: '{{count}}' }],
          },
          variables: { file: 'parse.js', count: 3 },
        },
      ],
    }),
  );
  expect((await onlyRun(service)).setup).toEqual({
    prompt: 'Mend parse.js, not {{file}} and not {{other}}.',
    source: { kind: 'empty' },
    prepare: 'fetch parse.js',
    verify: 'check 3',
    validator: 'read("parse.js")',
    validatorFiles: [{ path: 'lib.js', content: '3' }],
  });
});

test('variables that would blow a request up beyond measure are refused', async () => {
  await using service = openTestService();
  const bomb = {
    id: 'csv',
    name: 'CSV',
    verify: '{{word}}'.repeat(100_000),
    variables: { word: 'x'.repeat(100_000) },
  };
  expect(await service.issues('evals.start', startRequest({ cases: [bomb] }))).toEqual([
    { _tag: 'Refinement', path: ['cases', 0, 'verify'], message: expect.stringContaining('variables') },
  ]);
  const prompt = '{{word}}'.repeat(60_000);
  const cases = [
    { id: 'toml', name: 'TOML' },
    { ...bomb, verify: '' },
  ];
  expect(await service.issues('evals.start', startRequest({ suite: { ...suite, prompt }, cases }))).toEqual([
    { _tag: 'Refinement', path: ['cases', 1, 'variables'], message: expect.stringContaining('variables') },
  ]);
  const sourceFiles = Array.from({ length: 5 }, (_, n) => ({
    path: `${n}.js`,
    content: '{{word}}'.repeat(150),
  }));
  const many = { ...bomb, verify: '', validator: { name: 'v', source: '', sourceFiles } };
  expect(await service.issues('evals.start', startRequest({ cases: [many] }))).toEqual([
    { _tag: 'Refinement', path: ['cases', 0], message: expect.stringContaining('variables') },
  ]);
});

test('variables, manifests, tags and ids are bounded, and each refusal says where', async () => {
  await using service = openTestService();
  const issuesOf = (change: object) =>
    service.issues('evals.start', startRequest({ cases: [{ id: 'csv', name: 'CSV', ...change }] }));
  const manifest = Array.from({ length: 20_001 }, (_, index) => ({ index, name: 'n' }));
  for (const [change, path] of [
    [{ variables: { text: 'x'.repeat(2 ** 20) } }, ['variables']],
    [{ validator: { name: 'v', source: '', manifest } }, ['validator', 'manifest']],
    [{ tags: Array(65).fill('t') }, ['tags']],
    [{ tags: ['t'.repeat(201)] }, ['tags', 0]],
    [{ id: 'i'.repeat(201) }, ['id']],
  ] as const)
    expect(await issuesOf(change)).toMatchObject([{ path: ['cases', 0, ...path] }]);
});

test('a long prompt is stored once, however many cases and variants share it', async () => {
  await using service = openTestService();
  const prompt = 'p'.repeat(500 * 1024);
  const { runs } = await service.succeed(
    'evals.start',
    startRequest({
      suite: { ...suite, prompt },
      cases: Array.from({ length: 100 }, (_, n) => ({ id: `case-${n}`, name: 'n' })),
      variants: Array.from({ length: 20 }, (_, n) => ({ model: `model-${n}` })),
    }),
  );
  expect(runs).toHaveLength(2_000);
  const files = readdirSync(service.folder).map((name) => statSync(join(service.folder, name)).size);
  expect(files.reduce((sum, size) => sum + size)).toBeLessThan(8 * 1024 * 1024);
  const last = await service.succeed('evals.runs.list', { caseId: 'case-99', variant: 'model-7' });
  expect(last.runs[0]?.setup?.prompt).toBe(prompt);
});

test('the runs of a start are seen together, once all of them are written', async () => {
  await using service = openTestService();
  const cases = Array.from({ length: 20 }, (_, n) => ({ id: `case-${n}`, name: 'n' }));
  const variants = Array.from({ length: 20 }, (_, n) => ({ model: `model-${n}` }));
  const seen = new Set<number>();
  const started = service.succeed('evals.start', startRequest({ cases, variants }));
  for (let isOver = false; !isOver; ) {
    isOver = await Promise.race([started.then(() => true), setImmediate(false)]);
    const { cases: listed } = await service.succeed('evals.cases.list', {});
    const { runs } = await service.succeed('evals.runs.list', { caseId: 'case-0' });
    seen.add(listed.length).add(runs.length);
  }
  expect([...seen].sort()).toEqual([0, 20]);
});

test('of a start that a crash cut off nothing is left, once it cannot go on any more', async () => {
  using folder = folderForTest();
  const cases = Array.from({ length: 20 }, (_, n) => ({ id: `case-${n}`, name: 'n' }));
  const variants = Array.from({ length: 20 }, (_, n) => ({ model: `model-${n}` }));
  const rows = () => {
    using database = new DatabaseSync(join(folder.path, serviceDatabase));
    const { n } =
      database
        .prepare(
          'SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM batches) + (SELECT count(*) FROM batch_cases) AS n',
        )
        .get() ?? {};
    return Number(n);
  };
  const first = openTestService(folder.path);
  await first.succeed('evals.start', startRequest());
  const whole = rows();
  const cut = first.ask('evals.start', startRequest({ cases, variants }));
  while (rows() === whole) await setImmediate();
  await first.service.close();
  await cut;
  expect(rows()).toBeGreaterThan(whole);
  // Another process may still write it.
  await openTestService(folder.path).service.close();
  expect(rows()).toBeGreaterThan(whole);
  const clock = stillClock();
  clock.advance(serviceRequests.time.start + 1);
  await openService({ dataFolder: folder.path, clock, integrations: [] }).close();
  expect(rows()).toBe(whole);
});

test('braces that name no variable do not count as one', async () => {
  await using service = openTestService();
  const started = {
    name: 'n',
    verify: 'echo {{ {{}} {{unknown}} '.repeat(600),
    variables: { page: 'x'.repeat(100_000) },
  };
  const cases = ['csv', 'toml'].map((id) => ({ id, ...started }));
  await service.succeed('evals.start', startRequest({ cases }));
  expect((await onlyRun(service)).setup?.verify).toBe(started.verify);
});

test('a variant keeps its id from batch to batch, and two equal ones in a request stay apart', async () => {
  await using service = openTestService();
  const variants = [{ model: 'small' }, { model: 'large' }, { model: 'small' }];
  await service.succeed('evals.start', startRequest({ variants }));
  await service.succeed('evals.start', startRequest({ variants }));
  const { runs } = await service.succeed('evals.runs.list', { caseId: 'csv' });
  const ids = runs.map((run) => run.variant?.id);
  expect(ids.slice(0, 3)).toEqual(ids.slice(3));
  expect(new Set(ids).size).toBe(3);
  expect(ids[0]).toBe(`${ids[2]}-2`);
});

test('the definition hash is the same for the same work and another for other work', async () => {
  await using service = openTestService();
  const hashOf = async (id: string, change: Record<string, unknown> = {}) => {
    const cases = [{ id, name: 'n', verify: 'v', ...change }];
    await service.succeed('evals.start', startRequest({ cases }));
    const { runs } = await service.succeed('evals.runs.list', { caseId: id });
    return runs[0]?.definitionHash;
  };
  const first = await hashOf('csv');
  expect(await hashOf('csv')).toBe(first);
  expect(await hashOf('csv', { verify: 'w' })).not.toBe(first);
  expect(await hashOf('toml')).not.toBe(first);
});

test('two cases with one id are refused at the second', async () => {
  await using service = openTestService();
  const cases = ['csv', 'toml', 'csv'].map((id) => ({ id, name: 'n' }));
  expect(await service.issues('evals.start', startRequest({ cases }))).toEqual([
    { _tag: 'Refinement', path: ['cases', 2, 'id'], message: expect.stringContaining('"csv"') },
  ]);
});
