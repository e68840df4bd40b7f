import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openApiDocument } from '../../src/contract/openapi.ts';
import { type OperationName, operations } from '../../src/contract/operations.ts';
import type { Platform } from '../../src/service/platform.ts';
import { onlyRun, openTestService, report, startRequest } from './test-service.ts';

const committed = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8'));

test('the committed document is what the contract says now', () => {
  expect(committed, 'run scripts/generate.ts').toEqual(openApiDocument());
});

test('the service shows the document to anybody', async () => {
  await using service = openTestService();
  const answer = await service.service.fetch(new Request('http://service.test/openapi.json'));
  expect([answer.status, await answer.json()]).toEqual([200, committed]);
});

test('every operation is in the document, and additions are marked', () => {
  for (const [name, operation] of Object.entries(operations)) {
    const { post } = committed.paths[`/v1/${name}`];
    expect(post['x-offsite-addition'] === true, name).toBe('ours' in operation);
    for (const status of [200, 401, 500, ...operation.errors])
      expect(post.responses).toHaveProperty([status]);
  }
});

const breakKeys = (database: DatabaseSync) => database.exec('ALTER TABLE keys RENAME TO lost');
const breakCell = (database: DatabaseSync) => database.exec('UPDATE runs SET local = 0');

const claim = (id: string, ordinal: number) => ({ id, ordinal, agent: 'a', seconds: 60 });

/** For each status, a request that gets it; `before` may change the database first. */
interface Provoked {
  operation: string;
  status: number;
  body?: unknown;
  as?: 'nobody' | 'stranger';
  type?: string;
  before?: (database: DatabaseSync) => void;
}

/** Knows one model, and cannot run it. */
const unable: Platform = {
  refusal: async ({ variants }) => ({
    status: variants.some(({ model }) => model === 'unknown') ? 404 : 409,
    message: 'no',
  }),
  queued: () => undefined,
};

test('each status in the document can come, and each that can come is in the document', async () => {
  await using service = openTestService(undefined, unable);
  const batch = await service.succeed('evals.start', startRequest({ trials: 2 }));
  const run = await onlyRun(service);
  const cellKey = `csv:${run.variant?.id}`;
  await service.succeed('evals.reportTrial', report(run.id));
  await service.succeed('prompts.write', { id: 'p', content: 'one' });
  const good: Record<OperationName, unknown> = {
    'auth.whoami': {},
    'evals.start': startRequest(),
    'evals.runs.list': { caseId: 'csv' },
    'evals.rerunCell': { id: batch.id, cellKey },
    'evals.reportTrial': report(run.id),
    'evals.claimTrial': claim(run.id, 1),
    'evals.evidence': { id: run.id },
    'evals.cases.list': {},
    'evals.baseline': { caseId: 'csv', variant: 'v' },
    'connectors.integrations': {},
    'prompts.get': { id: 'p' },
    'prompts.promote': { id: 'p', channel: 'live', version: 1 },
    'prompts.write': { id: 'p', content: 'two' },
  };
  const provoked: Provoked[] = [
    ...Object.entries(good).flatMap(([operation, body]) => [
      { operation, body, status: 200 },
      { operation, body: 7, status: 400 },
      { operation, body, status: 401, as: 'nobody' as const },
      // Whoami needs no permission.
      { operation, body, status: operation === 'auth.whoami' ? 200 : 403, as: 'stranger' as const },
    ]),
    { operation: 'evals.start', status: 409, body: startRequest({ local: false }) },
    {
      operation: 'evals.start',
      status: 404,
      body: startRequest({ local: false, variants: [{ model: 'unknown' }] }),
    },
    { operation: 'evals.rerunCell', status: 404, body: { id: batch.id, cellKey: 'toml:v' } },
    { operation: 'evals.reportTrial', status: 404, body: report('run_none') },
    { operation: 'evals.reportTrial', status: 409, body: report(run.id, 0, { passed: false }) },
    { operation: 'evals.claimTrial', status: 404, body: claim('run_none', 1) },
    { operation: 'evals.claimTrial', status: 409, body: claim(run.id, 0) },
    { operation: 'evals.evidence', status: 404, body: { id: 'run_none' } },
    // This service has no auditor.
    { operation: 'evals.evidence', status: 409, body: 'a bundle', type: 'application/zstd' },
    { operation: 'prompts.get', status: 404, body: { id: 'none' } },
    { operation: 'prompts.promote', status: 409, body: { id: 'full', channel: 'live', version: 1 } },
    { operation: 'prompts.promote', status: 404, body: { id: 'none', channel: 'live', version: 1 } },
    {
      operation: 'evals.rerunCell',
      status: 409,
      body: { id: batch.id, cellKey },
      before: breakCell,
    },
    ...Object.entries(good).map(([operation, body], index) => {
      return { operation, body, status: 500, ...(index === 0 && { before: breakKeys }) };
    }),
  ];
  await service.succeed('prompts.write', { id: 'full', content: '' });
  for (let count = 0; count < 100; count += 1)
    await service.succeed('prompts.promote', { id: 'full', channel: `channel-${count}`, version: 1 });
  const came = new Map<string, Set<number>>(Object.keys(good).map((name) => [name, new Set()]));
  const keys = { nobody: 'no-key', stranger: service.keyFor('Acme') };
  for (const { operation, body, status, as, type, before } of provoked) {
    using database = new DatabaseSync(join(service.folder, 'service.db'));
    before?.(database);
    const answer = await service.ask(operation, body, as && keys[as], type);
    expect([operation, body, answer.status]).toEqual([operation, body, status]);
    came.get(operation)?.add(status);
  }
  for (const [name, statuses] of came) {
    const documented = Object.keys(committed.paths[`/v1/${name}`].post.responses).map(Number);
    expect([name, documented.toSorted()]).toEqual([name, [...statuses].toSorted()]);
  }
});

test('no reference in the document leads nowhere', () => {
  const references = JSON.stringify(committed).matchAll(/"\$ref":"#\/([^"]+)"/g);
  for (const [, path = ''] of references) expect(committed).toHaveProperty(path.split('/'));
});
