import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openApiDocument } from '../../src/contract/openapi.ts';
import { operations } from '../../src/contract/operations.ts';
import { openTestService } from './test-service.ts';

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

test('no reference in the document leads nowhere', () => {
  const references = JSON.stringify(committed).matchAll(/"\$ref":"#\/([^"]+)"/g);
  for (const [, path = ''] of references) expect(committed).toHaveProperty(path.split('/'));
});
