import { expect, test } from 'vitest';
import { serviceAnswers } from '../../src/bounds/service.ts';
import type { Client } from '../../src/client/client.ts';
import { listRuns } from '../../src/client/runs.ts';
import type { RunRecord } from '../../src/contract/record.ts';
import { clientOf, errorOf } from './client-of.ts';
import { json, type ScriptedService, type Step, scriptedService } from './scripted-service.ts';

const names = (count: number) => Array.from({ length: count }, (_, index) => `run-${index + 1}`);

/** A service with these runs (newest first, read at each request) that gives page `number - first`. */
function paged(runs: () => string[], first: 0 | 1, pageSize = 20): Step {
  return (response, received) => {
    const { page } = JSON.parse(received.body);
    const index = Math.max(0, page - first);
    const shown = runs().slice(index * pageSize, (index + 1) * pageSize);
    const body = { page, pageSize, total: runs().length, runs: shown.map((id) => ({ id })) };
    return json(200, body)(response, received);
  };
}

async function listed(client: Client): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of client.runs({ caseId: 'c' })) ids.push(id);
  return ids;
}

const pagesOf = (service: ScriptedService) => service.received.map(({ body }) => JSON.parse(body).page);

for (const [total, pages] of [
  [0, [1]],
  [1, [1]],
  [20, [1]],
  [21, [1, 2]],
  [60, [1, 2, 3]],
] as const) {
  test(`${total} runs are listed newest first with ${pages.length} requests`, async () => {
    const runs = names(total);
    await using service = await scriptedService(paged(() => runs, 1));
    await using client = clientOf(service);
    expect(await listed(client)).toEqual(runs);
    expect(pagesOf(service)).toEqual(pages);
  });
}

for (const total of [0, 1, 20, 21, 39, 40, 41, 60]) {
  test(`all of ${total} runs are listed, each once, from a service whose pages count from 0`, async () => {
    const runs = names(total);
    await using service = await scriptedService(paged(() => runs, 0));
    await using client = clientOf(service);
    expect((await listed(client)).toSorted()).toEqual(runs.toSorted());
    // Once that is known, they come in order.
    if (total > 0) expect(await listed(client)).toEqual(runs);
  });
}

test('a service that ignores the page number does not make the list endless', async () => {
  await using service = await scriptedService((response, received) =>
    json(200, { page: 1, pageSize: 20, total: 1000, runs: names(20).map((id) => ({ id })) })(
      response,
      received,
    ),
  );
  await using client = clientOf(service);
  expect(await listed(client)).toEqual(names(20));
  expect(service.received.length).toBeLessThan(6);
});

test('runs that start while the pages are read, even a whole page of them, hide none and repeat none', async () => {
  let runs = names(50);
  const step = paged(() => runs, 1);
  await using service = await scriptedService((response, received) => {
    step(response, received);
    if (runs.length === 50) runs = [...Array.from({ length: 20 }, (_, index) => `new-${index}`), ...runs];
  });
  await using client = clientOf(service);
  const ids = await listed(client);
  expect(ids.filter((id) => id.startsWith('run-'))).toEqual(names(50));
  expect(new Set(ids).size).toBe(ids.length);
});

test('pages are read only as they are needed, and the filter is sent with each', async () => {
  await using service = await scriptedService(paged(() => names(100), 1));
  await using client = clientOf(service);
  let count = 0;
  for await (const run of client.runs({ caseId: 'c', variant: 'm' })) {
    expect(run.id).toBeTypeOf('string');
    count += 1;
    if (count === 25) break;
  }
  expect(service.received.map(({ body }) => JSON.parse(body))).toEqual([
    { caseId: 'c', variant: 'm', page: 1 },
    { caseId: 'c', variant: 'm', page: 2 },
  ]);
});

test('an error on a later page is thrown after the runs before it', async () => {
  const first = paged(() => names(40), 1);
  await using service = await scriptedService(first, json(404, { _tag: 'NotFound', message: 'gone' }));
  await using client = clientOf(service);
  expect(await errorOf(listed(client))).toMatchObject({ name: 'NotFound' });
});

test('a service that always has another page is not followed for ever', async () => {
  const readPage = async ({ page = 1 }: { page?: number | undefined }) => ({
    page,
    pageSize: 20,
    total: Number.MAX_SAFE_INTEGER,
    runs: Array.from({ length: 20 }, (_, index) => ({ id: `run-${page}-${index}` }) as RunRecord),
  });
  let listed = 0;
  const list = async () => {
    for await (const _ of listRuns(readPage, { caseId: 'c' }, { first: 1 })) {
      listed += 1;
      if (listed > 2 * serviceAnswers.count.runs) return;
    }
  };
  await expect(list()).rejects.toMatchObject({ code: 'CLIENT_LIST_ENDLESS' });
  expect(listed).toBe(serviceAnswers.count.runs);
});
