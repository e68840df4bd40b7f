import { symlinkSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { endedRuns, openServingPlace, type Serving, type ServingPlace, worker } from './serving-place.ts';

const unable = /platform batches cannot run here yet/;

function start(serving: Serving, change: Record<string, unknown> = {}) {
  return serving.ask('evals.start', {
    suite: { id: 'small', name: 'Small', prompt: 'Do it.' },
    cases: [{ id: 'a', name: 'A', verify: 'true' }],
    variants: [worker],
    trials: 1,
    ...change,
  });
}

const named = (harness: string, sandbox: string, model = 'none') => ({
  model,
  credentials: { harnessConnectionId: harness, sandboxConnectionId: sandbox },
});

test('without an engine a platform batch is refused with the engine’s reason, and a local one starts', async () => {
  await using at = openServingPlace();
  const env = { DOCKER_HOST: `unix://${at.place.folder}/no-engine.sock` };
  const serving = await at.serve({ env, ready: unable });
  const { status, body } = await start(serving);
  expect(status).toBe(409);
  expect(body).toMatchObject({ _tag: 'Conflict', message: expect.stringContaining('no-engine.sock') });
  expect(await start(serving, { local: true })).toMatchObject({ status: 200 });

  // The engine comes up while the server runs.
  symlinkSync('/var/run/docker.sock', `${at.place.folder}/no-engine.sock`);
  const accepted = await start(serving, { cases: [{ id: 'later', name: 'Later', verify: 'true' }] });
  expect(accepted, JSON.stringify(accepted.body)).toMatchObject({ status: 200 });
  await serving.printed(/platform batches run here/);
  expect(await endedRuns(serving, 'later')).toMatchObject([{ distribution: { passed: 1 } }]);
});

describe('by a server that runs platform batches,', () => {
  let at: ServingPlace;
  let serving: Serving;
  beforeAll(async () => {
    at = openServingPlace();
    const sandboxes = { local: { memory: '256m' }, bare: { image: 'offsite-test/does-not-exist' } };
    at.configure({ connections: { harness: { command: 'con_77' } }, models: {}, sandboxes });
    serving = await at.serve();
  });
  afterAll(() => at[Symbol.asyncDispose]());

  test('what the configuration does not have is a 404 that names it, what is known, and where to add it', async () => {
    const refused = async (variant: object) => {
      const { status, body } = await start(serving, { variants: [variant] });
      return [status, (body as { message: string }).message] as const;
    };
    const file = /project\/offsite\.yaml/;
    for (const [variant, unknown, known] of [
      [named('con_78', 'local'), '"con_78"', 'con_77'],
      [named('con_77', 'cluster'), '"cluster"', 'local'],
      [named('codex', 'local', 'gpt-unknown'), '"gpt-unknown"', 'none is known'],
      [named('con_77', 'local', 'gpt-unknown'), '"gpt-unknown"', 'none is known'],
    ] as const) {
      const [status, message] = await refused(variant);
      expect(status).toBe(404);
      expect(message).toContain(unknown);
      expect(message).toContain(known);
      expect(message).toMatch(file);
    }
    expect(await refused({ model: 'none' })).toEqual([404, expect.stringContaining('credentials')]);
  });

  test('what no request can carry, or this machine lacks, is a 409 that says so', async () => {
    const user = { kind: 'simulated', goal: 'a poem', prompt: '' };
    for (const [change, reason] of [
      [
        { cases: [{ id: 'a', name: 'A', verify: 'true', user }], variants: [named('con_77', 'local')] },
        'simulated user',
      ],
      [{ variants: [named('con_77', 'bare')] }, 'offsite-test/does-not-exist'],
    ] as const) {
      const { status, body } = await start(serving, change);
      expect(status).toBe(409);
      expect((body as { message: string }).message).toContain(reason);
    }
  });
});

test('a server without an executor refuses platform batches and says how to start one', async () => {
  await using at = openServingPlace();
  const serving = await at.serve({ args: ['--no-executor'], ready: /Eval Service at/ });
  const { status, body } = await start(serving);
  expect(status).toBe(409);
  expect(body).toMatchObject({ message: expect.stringContaining('local: true') });
});
