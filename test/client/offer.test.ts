import { describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { serviceDescription } from '../../src/bounds/service.ts';
import { openApiDocument } from '../../src/contract/openapi.ts';
import { openTestService } from '../service/test-service.ts';
import { clientOf } from './client-of.ts';
import { type Step, scriptedService } from './scripted-service.ts';

const json =
  (value: unknown, status = 200): Step =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
const text =
  (body: string): Step =>
  (response) =>
    response.end(body);

/** Its time is up soon. */
const hasty: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(Math.min(ms, 100), signal),
};

async function offerOf(steps: Step[], clock = systemClock) {
  await using service = await scriptedService(...steps);
  await using client = clientOf(service, { clock });
  return { offer: await client.offers('evals.claimTrial'), received: service.received };
}

test('our own service offers claims, and is asked without the key', async () => {
  await using own = openTestService();
  const { url } = await own.service.listen();
  await using client = clientOf({ url }, { clock: systemClock });
  expect(await client.offers('evals.claimTrial')).toBe('offered');
  const { offer, received } = await offerOf([json(openApiDocument())]);
  expect(offer).toBe('offered');
  expect(received).toMatchObject([{ method: 'GET', path: '/openapi.json' }]);
  expect(received[0]?.headers.authorization).toBeUndefined();
});

describe('a service that offers no claims is no failure', () => {
  test.for<[string, Step]>([
    ['it has no document', json({ _tag: 'NotFound', message: 'no' }, 404)],
    ['it takes no GET', json({}, 405)],
    ['its document lists other operations', json({ paths: { '/v1/evals.start': { post: {} } } })],
    ['it lists the path with another method', json({ paths: { '/v1/evals.claimTrial': { get: {} } } })],
    ['its document is null', json(null)],
    ['its paths are a list', json({ paths: ['/v1/evals.claimTrial'] })],
    ['its paths have a prototype of their own', text('{"__proto__": {"paths": 1}}')],
    ['it sends a page', text('<html>welcome</html>')],
    ['it sends nothing', text('')],
    ['it sends no text', (response) => response.end(Buffer.from([0xff, 0xfe, 0x00]))],
    ['it is nested too deep', text('['.repeat(200_000))],
    ['it is too large', text(' '.repeat(serviceDescription.bytes.document + 1))],
    ['it leads elsewhere', (response) => response.writeHead(302, { location: 'http://x/' }).end()],
  ])('%s', async ([, step]) => {
    expect((await offerOf([step])).offer).toBe('absent');
  });
});

test('a service that fails, never answers, or breaks off did not say it', async () => {
  expect((await offerOf([json({}, 503)])).offer).toBe('unclear');
  expect((await offerOf([(response) => response.destroy()])).offer).toBe('unclear');
  expect((await offerOf([() => undefined], hasty)).offer).toBe('unclear');
});

test('a kept connection that the service has closed is no answer', async () => {
  const { offer } = await offerOf([(response) => response.destroy(), json(openApiDocument())]);
  expect(offer).toBe('offered');
});

test('nothing answers at the address', async () => {
  const service = await scriptedService(json({}));
  await service[Symbol.asyncDispose]();
  await using client = clientOf(service, { clock: systemClock });
  expect(await client.offers('evals.claimTrial')).toBe('unreachable');
});
