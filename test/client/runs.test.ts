import { expect, test } from 'vitest';
import { serviceAnswers } from '../../src/bounds/service.ts';
import type { Client } from '../../src/client/client.ts';
import { listRuns } from '../../src/client/pages/list-runs.ts';
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
  [20, [1]],
  [41, [1, 2, 3]],
] as const) {
  test(`${total} runs are listed newest first with ${pages.length} requests`, async () => {
    const runs = names(total);
    await using service = await scriptedService(paged(() => runs, 1));
    await using client = clientOf(service);
    expect(await listed(client)).toEqual(runs);
    expect(pagesOf(service)).toEqual(pages);
  });
}

for (const total of [0, 20, 21, 40, 41]) {
  test(`all of ${total} runs are listed, each once, from a service whose pages count from 0`, async () => {
    const runs = names(total);
    await using service = await scriptedService(paged(() => runs, 0));
    await using client = clientOf(service);
    expect((await listed(client)).toSorted()).toEqual(runs.toSorted());
    // Once that is known, they come in order.
    if (total > 0) expect(await listed(client)).toEqual(runs);
  });
}

test('of a service whose pages count from 0, lists that are read at the same time are all whole', async () => {
  const runs = names(3);
  const answer = paged(() => runs, 0);
  const asked = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  let zeros = 0;
  await using service = await scriptedService(async (response, received) => {
    if (JSON.parse(received.body).page === 0 && zeros++ === 0) {
      asked.resolve();
      await held.promise;
    }
    return answer(response, received);
  });
  await using client = clientOf(service);
  const first = listed(client);
  await asked.promise;
  // The first list does not know yet what page 0 has.
  expect(await listed(client)).toEqual(runs);
  held.resolve();
  expect(await first).toEqual(runs);
});

/** Answers page 0 as a strict service whose pages count from 1. */
function strict(step: Step): Step {
  return (response, received) => {
    if (JSON.parse(received.body).page !== 0) return step(response, received);
    const issues = [{ _tag: 'Refinement', path: ['page'], message: 'must be at least 1' }];
    return json(400, { _tag: 'HttpApiDecodeError', message: 'no such page', issues })(response, received);
  };
}

for (const total of [0, 20, 21, 40, 41]) {
  test(`of ${total} runs, page 0 is never requested, also if one of each page cannot be read`, async () => {
    const runs = names(total).map((id, index) => (index % 20 === 7 ? { odd: id } : { id }));
    const step: Step = (response, received) => {
      const { page } = JSON.parse(received.body);
      const shown = runs.slice((page - 1) * 20, page * 20);
      return json(200, { page, pageSize: 20, total, runs: shown })(response, received);
    };
    await using service = await scriptedService(strict(step));
    await using client = clientOf(service);
    const readable = names(total).filter((_, index) => index % 20 !== 7);
    for (const _ of [1, 2]) expect(await listed(client)).toEqual(readable);
    expect(pagesOf(service)).not.toContain(0);
    expect(pagesOf(service)).toHaveLength(2 * Math.max(1, Math.ceil(total / 20)));
  });
}

test('a strict service that shows fewer runs than it counts is asked for page 0 at most once', async () => {
  // Twenty of forty are gone, which looks like a service whose pages count from 0.
  const step: Step = (response, received) => {
    const { page } = JSON.parse(received.body);
    const runs = page === 1 ? names(20).map((id) => ({ id })) : [];
    return json(200, { page, pageSize: 20, total: 40, runs })(response, received);
  };
  await using service = await scriptedService(strict(step));
  await using client = clientOf(service);
  for (const _ of [1, 2, 3]) expect(await listed(client)).toEqual(names(20));
  expect(pagesOf(service).filter((page) => page === 0)).toHaveLength(1);
});

test('once a service has shown that it counts from 1, page 0 is not requested, whatever is missing', async () => {
  let total = 20;
  const step: Step = (response, received) => {
    const { page } = JSON.parse(received.body);
    const runs = page === 1 ? names(20).map((id) => ({ id })) : [];
    return json(200, { page, pageSize: 20, total, runs })(response, received);
  };
  await using service = await scriptedService(strict(step));
  await using client = clientOf(service);
  await listed(client);
  total = 40;
  await listed(client);
  expect(pagesOf(service)).not.toContain(0);
});

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
  const readPage = async ({ page: number = 1 }: { page?: number | undefined }) => {
    const runs = Array.from({ length: 20 }, (_, index) => ({ id: `run-${number}-${index}` }));
    return { page: { page: number, pageSize: 20, total: Number.MAX_SAFE_INTEGER, runs }, unread: 0 };
  };
  let listed = 0;
  const list = async () => {
    for await (const _ of listRuns(readPage, { caseId: 'c' }, {})) {
      listed += 1;
      if (listed > 2 * serviceAnswers.count.runs) return;
    }
  };
  await expect(list()).rejects.toMatchObject({ code: 'CLIENT_LIST_ENDLESS' });
  expect(listed).toBe(serviceAnswers.count.runs);
});
