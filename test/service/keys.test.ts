import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openTestService, report, startRequest, startRun } from './test-service.ts';

test('a made key works, tells who it is, and its secret is kept nowhere', async () => {
  await using service = openTestService();
  const made = service.service.createKey({
    organization: 'Blue Team',
    permissions: ['evals:read'],
    name: 'laptop',
  });
  expect(made.secret).toMatch(/^ofs_[\w-]{43}$/);
  const whoami = await service.succeed('auth.whoami', {}, made.secret);
  expect(whoami).toEqual({
    credential: { kind: 'apiKey', name: 'laptop', start: made.secret.slice(0, 10) },
    organization: { id: expect.stringMatching(/^org_/), name: 'Blue Team', slug: 'blue-team' },
    permissions: ['evals:read'],
  });
  expect(JSON.stringify(service.service.listKeys())).not.toContain(made.secret);
  for (const file of ['service.db', 'service.db-wal']) {
    expect(readFileSync(join(service.folder, file)).includes(made.secret)).toBe(false);
  }
});

test('a revoked key is refused from then on', async () => {
  await using service = openTestService();
  const { id, secret } = service.service.createKey({ organization: 'Acme', permissions: [] });
  await service.succeed('auth.whoami', {}, secret);
  expect(service.service.revokeKey(id).revokedAt).toBe(service.clock.now());
  expect((await service.ask('auth.whoami', {}, secret)).status).toBe(401);
  service.clock.advance(1000);
  expect(service.service.revokeKey(id).revokedAt).toBe(service.clock.now() - 1000);
  expect(() => service.service.revokeKey('key_none')).toThrow('there is no API key key_none');
  expect(() => service.service.revokeKey('ofs_a-secret')).toThrow(/^there is no API key with .* a secret$/);
});

test('a seeded key is there once, and stays revoked when it is seeded again', async () => {
  await using service = openTestService();
  const purpose = { organization: 'Local', permissions: ['evals:read' as const] };
  const seeded = service.service.seedKey('a-secret-of-mine', purpose);
  expect(service.service.seedKey('a-secret-of-mine', { ...purpose, organization: 'Other' })).toEqual(seeded);
  expect(seeded.start).toBeNull();
  service.service.revokeKey(seeded.id);
  expect(service.service.seedKey('a-secret-of-mine', purpose).revokedAt).not.toBeNull();
  expect((await service.ask('auth.whoami', {}, 'a-secret-of-mine')).status).toBe(401);
});

test('a secret that cannot travel in a header is refused', async () => {
  await using service = openTestService();
  for (const secret of ['', 'short', 'with a space in it', 'ümlaut-secret', 'line\nbreak-secret']) {
    expect(() => service.service.seedKey(secret, { organization: 'Local', permissions: [] })).toThrow(
      'visible ASCII',
    );
  }
});

test('an organization never sees or changes what is of another', async () => {
  await using service = openTestService();
  const other = service.keyFor(
    'Other',
    'evals:read',
    'evals:write',
    'prompts:read',
    'prompts:write',
    'channels:write',
  );
  const batch = await service.succeed('evals.start', startRequest());
  const run = batch.runs[0]?.id;
  const { runs } = await service.succeed('evals.runs.list', { caseId: 'csv' });
  const variant = runs[0]?.variant?.id;
  await service.succeed('prompts.write', { id: 'p', content: 'ours' });
  await service.succeed('prompts.promote', { id: 'p', channel: 'production', version: 1 });

  expect(await service.succeed('evals.runs.list', { caseId: 'csv' }, other)).toMatchObject({
    total: 0,
    runs: [],
  });
  expect(await service.succeed('evals.cases.list', {}, other)).toEqual({ cases: [] });
  expect(await service.succeed('evals.baseline', { caseId: 'csv', variant }, other)).toEqual({
    baselines: [],
    more: 0,
  });
  for (const [operation, request] of [
    ['evals.reportTrial', report(run)],
    ['evals.reportTrial', report(batch.id)],
    ['evals.rerunCell', { id: batch.id, cellKey: `csv:${variant}` }],
    ['prompts.get', { id: 'p' }],
    ['prompts.get', { id: 'p', channel: 'production' }],
    ['prompts.promote', { id: 'p', channel: 'production', version: 1 }],
  ] as const) {
    expect((await service.ask(operation, request, other)).status, operation).toBe(404);
  }
  // The same names in the other organization are other things.
  expect((await service.succeed('prompts.write', { id: 'p', content: 'theirs' }, other)).version).toBe(1);
  await service.succeed('evals.start', startRequest({ cases: [{ id: 'csv', name: 'Theirs' }] }), other);
  expect((await service.succeed('prompts.get', { id: 'p', channel: 'production' })).content).toBe('ours');
  expect(await service.succeed('evals.runs.list', { caseId: 'csv' })).toMatchObject({ total: 1 });
  expect((await service.succeed('evals.cases.list', {})).cases[0]?.name).toBe('CSV');
});

test('no key is ever in the log', async () => {
  await using service = openTestService();
  await startRun(service);
  await service.ask('evals.start', { apiKey: service.key });
  await service.ask(`auth.whoami?key=${service.key}`, {});
  await service.ask(service.key, {});
  await service.ask('auth.whoami', {}, `${service.key}x`);
  expect(service.logged).toHaveLength(5);
  expect(service.logged.join('')).not.toContain(service.key);
  expect(JSON.parse(service.logged[0] ?? '')).toMatchObject({
    method: 'POST',
    path: '/v1/evals.start',
    status: 200,
    organization: 'acme',
    key: expect.stringMatching(/^key_/),
    requestId: expect.stringMatching(/^req_/),
  });
});

test('a name whose slug another organization has is refused', async () => {
  await using service = openTestService();
  const make = (organization: string) => service.service.createKey({ organization, permissions: [] });
  make('Acme Labs');
  for (const other of ['Ü Acme Labs', 'acme labs', 'Acme-Labs!'])
    expect(() => make(other)).toThrow(/would have the slug acme-labs, which is that of "Acme Labs"/);
  expect([make('Acme Labs'), make('acme-labs')].map(({ organization }) => organization)).toEqual([
    'acme-labs',
    'acme-labs',
  ]);
});
