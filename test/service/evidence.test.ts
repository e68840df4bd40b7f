import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { auditorHere } from '../../src/cli/audit-process.ts';
import { openTestService, startRun } from './test-service.ts';

const zstd = 'application/zstd';

test('a file that is no evidence is refused with what is wrong, and nothing is marked', async () => {
  await using service = openTestService(undefined, undefined, auditorHere(process.env));
  const id = await startRun(service);
  const answer = await service.ask('evals.evidence', 'no bundle', service.key, zstd);
  expect(answer).toMatchObject({
    status: 400,
    body: {
      _tag: 'HttpApiDecodeError',
      issues: [{ message: expect.stringMatching(/^evidence\.tar\.zst is not evidence that can be read: /) }],
    },
  });
  expect(await service.succeed('evals.evidence', { id })).toEqual({ trials: [] });
});

test('who may only read is refused before anything is read, and others see no run of theirs', async () => {
  await using service = openTestService(undefined, undefined, auditorHere(process.env));
  const id = await startRun(service);
  const reader = service.keyFor('Acme', 'evals:read');
  expect(await service.ask('evals.evidence', 'x', reader, zstd)).toMatchObject({
    status: 403,
    body: { message: 'The API key lacks the permission evals:write.' },
  });
  expect((await service.ask('evals.evidence', { id }, reader)).status).toBe(200);
  const stranger = service.keyFor('Other', 'evals:read');
  expect((await service.ask('evals.evidence', { id }, stranger)).status).toBe(404);
});

test('a service that cannot audit says so', async () => {
  await using service = openTestService();
  expect(await service.ask('evals.evidence', 'x', service.key, zstd)).toMatchObject({
    status: 409,
    body: { message: 'Nothing audits evidence here: send it to a service of `offsite serve`.' },
  });
});

test('one audit at a time; evidence that is empty or too large is refused, and nothing stays behind', async () => {
  const files: string[] = [];
  const real = auditorHere(process.env);
  const entered = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  await using service = openTestService(undefined, undefined, {
    async audit(file, signal) {
      files.push(file);
      entered.resolve();
      await released.promise;
      return real.audit(file, signal);
    },
  });
  const { url } = await service.service.listen();
  const send = (body: string, headers: Record<string, string> = {}) =>
    fetch(`${url}/v1/evals.evidence`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.key}`, 'content-type': zstd, ...headers },
      body,
    });
  const first = send('no bundle', { 'content-type': 'application/octet-stream' });
  await entered.promise;
  const second = await send('another');
  expect([second.status, second.headers.get('retry-after')]).toEqual([429, '5']);
  released.resolve();
  expect((await first).status).toBe(400);

  const empty = await send('');
  expect([empty.status, await empty.json()]).toMatchObject([
    400,
    { message: 'the evidence ended before its announced length' },
  ]);
  const announced = { authorization: `Bearer ${service.key}`, 'content-length': String(2 * 1024 ** 3 + 1) };
  const large = await service.service.fetch(
    new Request(`${url}/v1/evals.evidence`, {
      method: 'POST',
      headers: { 'content-type': zstd, ...announced },
      body: 'x',
    }),
  );
  expect(large.status).toBe(413);
  expect((await send('no bundle')).status).toBe(400);
  expect(files).toHaveLength(2);
  expect(files.filter((file) => existsSync(dirname(file)))).toEqual([]);
});
