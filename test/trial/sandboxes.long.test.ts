import { createHash, randomUUID } from 'node:crypto';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import type { Container } from '../../src/engine/container.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { KnownKeys } from '../../src/redaction/redactor.ts';
import { profileOf } from '../../src/suite/plan.ts';
import { Sandboxes, type SandboxOptions } from '../../src/trial/prepare/sandboxes.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { markerRuns, removeRepository, testEngine, until } from '../engine/engine-fixture.ts';
import { specOf, validator } from './trial-bench.ts';

const snapshots = { repository: `offsite-test/${randomUUID()}` };
let engine: Engine;
beforeAll(async () => {
  engine = await connectEngine({ instance: `test-${randomUUID()}`, snapshots });
});
afterAll(async () => {
  await engine?.[Symbol.asyncDispose]();
  // An engine connection holds the volumes that it used.
  await using last = await testEngine({ snapshots });
  await removeRepository(last);
});

const never = new AbortController().signal;
const uuid = 'cat /proc/sys/kernel/random/uuid';

/** The sandboxes of a batch of its own. */
function batch(options?: SandboxOptions): Sandboxes {
  return new Sandboxes(engine, undefined, options);
}

function sha256Of(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

async function printed(container: Container, script: string): Promise<string> {
  const result = await container.exec({ argv: ['bash', '-c', script], timeoutMs: 60_000 });
  return result.stdout.text;
}

/** Why a trial gets no sandbox. */
async function refusal(sandboxes: Sandboxes, spec: TrialSpec) {
  return sandboxes.take(spec, never).then(
    () => undefined,
    (error) => error.failure,
  );
}

describe('prepare that leaves a process running', () => {
  const prepare = `${uuid} > made
cat /proc/net/dev > devices
setsid sleep 4321 > /dev/null 2>&1 &`;
  const spec = { prepare, verify: 'true' };

  test('runs in each trial’s own sandbox, where its process goes on, and which it leaves without a network', async () => {
    await using sandboxes = batch();
    const [one, two] = [
      await sandboxes.take(specOf('', spec), never),
      await sandboxes.take(specOf('', spec), never),
    ];
    const made: string[] = [];
    for (const sandbox of [one, two]) {
      const { container } = sandbox;
      const { state: before } = await sandbox.prepared();
      const running = (await container.processes()).map(({ command }) => command);
      expect(running).toEqual([expect.stringContaining('sleep 4321')]);
      expect(before).not.toBe('large');
      expect(before !== 'large' && before.has('made')).toBe(true);
      expect(await printed(container, 'cat devices')).toContain('eth0:');
      const now = await printed(container, 'cat /proc/net/dev');
      expect(now).toContain('lo:');
      expect(now).not.toContain('eth0:');
      made.push(await printed(container, 'cat made'));
      sandboxes.giveBack(sandbox);
    }
    expect(made[0]).not.toBe(made[1]);
  });

  test('gets no network back when its container is started again', async () => {
    await using sandboxes = batch();
    const sandbox = await sandboxes.take(specOf('', spec), never);
    const { container } = sandbox;
    await dockerOf(engine).getContainer(container.id).restart({ t: 0 });
    await until(async () => (await dockerOf(engine).getContainer(container.id).inspect()).State.Running);
    expect(await printed(container, 'cat /proc/net/dev')).not.toContain('eth0:');
    sandboxes.giveBack(sandbox);
  });

  test('keeps the network where the sandbox is open', async () => {
    await using sandboxes = batch();
    const sandbox = await sandboxes.take(specOf('', spec, { network: 'open' }), never);
    const { container } = sandbox;
    expect(await printed(container, 'cat /proc/net/dev')).toContain('eth0:');
    sandboxes.giveBack(sandbox);
  });
});

test('a harness does not wait until the prepared workspace is read, which is read where it is graded', async () => {
  await using own = await connectEngine({ instance: `test-${randomUUID()}`, snapshots });
  await using sandboxes = new Sandboxes(own, undefined);
  const { containers } = own.port;
  const { getArchive } = containers;
  const reading = Promise.withResolvers<string>();
  const goes = Promise.withResolvers<void>();
  containers.getArchive = async (id, ...rest) => {
    reading.resolve(id);
    await goes.promise;
    return getArchive(id, ...rest);
  };
  const spec = specOf('', { verify: 'true', prepare: 'echo ready > made' });
  sandboxes.start(spec, never);
  const trial = await sandboxes.take(spec, never);
  expect(await printed(trial.container, 'echo changed > made; cat made')).toBe('changed\n');
  expect(await reading.promise).not.toBe(trial.container.id);
  goes.resolve();
  const { state } = await trial.prepared();
  expect(state !== 'large' && state.get('made')?.sha256).toBe(sha256Of('ready\n'));
  sandboxes.forget(spec);
  sandboxes.giveBack(trial);
});

test('an image in which nothing was found is not searched again, in later runs neither; others are', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-test-'));
  using ledger = new Ledger(folder.path, systemClock);
  await using own = await connectEngine({ instance: `test-${randomUUID()}`, snapshots });
  const { containers } = own.port;
  const { exec } = containers;
  let searches = 0;
  containers.exec = (id, request) => {
    if (request.argv.includes('-s')) searches += 1;
    return exec(id, request);
  };
  const of = (content: string) => ({
    name: 'tests/answer',
    size: content.length,
    blobs: [],
    sha256: sha256Of(content),
  });
  const take = async (answer: string) => {
    await using sandboxes = new Sandboxes(own, undefined, { buildLogs: ledger.buildLogs });
    const spec = specOf('', { verify: 'true', prepare: 'echo 42 > given' });
    return refusal(sandboxes, { ...spec, answers: [of(answer)] });
  };
  for (const count of [1, 1]) {
    expect(await take('secret\n')).toBeUndefined();
    expect(searches).toBe(count);
  }
  for (const count of [2, 3]) {
    expect(await take('42\n')).toMatchObject({ kind: 'task', givesAway: true });
    expect(searches).toBe(count);
  }
});

test('the sandboxes that grade a trial start beside its own, and none stays if they are not needed', async () => {
  await using own = await connectEngine({ instance: `test-${randomUUID()}`, snapshots });
  await using sandboxes = new Sandboxes(own, undefined);
  const spec = specOf('', { verify: 'true', validator: validator('') });
  const filters = { label: [`offsite.instance=${own.instance}`, 'offsite.role=container'] };
  const there = async () => (await dockerOf(own).listContainers({ all: true, filters })).length;
  sandboxes.start(spec, never);
  await until(async () => (await there()) === 3);
  const trial = await sandboxes.take(spec, never);
  const grader = await sandboxes.takeForGrading(spec, never, undefined);
  expect(await there()).toBe(3);
  sandboxes.forget(spec);
  await until(async () => (await there()) === 2);
  for (const each of [trial, grader]) sandboxes.giveBack(each);
  await sandboxes.removalsEnded();
  expect(await there()).toBe(0);
  // Also where they have just begun to start.
  sandboxes.start(spec, never);
  sandboxes.forget(spec);
  await sandboxes.removalsEnded();
  expect(await there()).toBe(0);
});

test('install that leaves a process running is an error of the profile, which says so', async () => {
  await using sandboxes = batch();
  const profile = profileOf({ name: 'busy', install: 'setsid sleep 4321 > /dev/null 2>&1 &' });
  expect(await refusal(sandboxes, specOf('', { profile }))).toMatchObject({
    kind: 'task',
    phase: 'install',
    message: expect.stringContaining('sleep 4321'),
  });
});

test('prepare that fails is run once for all trials of a batch, and anew for another batch', async () => {
  const spec = specOf('', { prepare: `${uuid}; exit 3` });
  await using sandboxes = batch();
  const [first, second] = await Promise.all([
    refusal(sandboxes, spec),
    refusal(sandboxes, { ...spec, ordinal: 1 }),
  ]);
  const third = await refusal(sandboxes, { ...spec, ordinal: 2 });
  expect(first).toMatchObject({ kind: 'task', phase: 'prepare', message: 'prepare exited with 3' });
  expect([second.output, third.output]).toEqual([first.output, first.output]);
  await using later = batch();
  expect((await refusal(later, spec)).output).not.toBe(first.output);
});

test('what a harness needs is installed before the profile’s own, once', async () => {
  const harness = {
    name: 'command',
    install: () => `${uuid} > /offsite/cli/harness`,
  } as Partial<Runner> as Runner;
  await using sandboxes = batch({ runners: [harness] });
  const profile = profileOf({ install: 'cp /offsite/cli/harness /opt/seen' });
  const seen: string[] = [];
  for (const ordinal of [0, 1]) {
    const sandbox = await sandboxes.take(specOf('', { profile, ordinal }), never);
    seen.push(await printed(sandbox.container, 'cat /offsite/cli/harness /opt/seen'));
    sandboxes.giveBack(sandbox);
  }
  expect(seen[0]).toMatch(/^([-0-9a-f]{36}\n)\1$/);
  expect(seen[1]).toBe(seen[0]);
});

describe('prepare', () => {
  const install = (name: string) => () => `${uuid} > /offsite/cli/${name}`;
  const harnesses = ['one', 'two', 'three'].map(
    (name) => ({ name, install: install(name) }) as Partial<Runner> as Runner,
  );
  const prepared = async (change: Partial<TrialSpec>) => {
    const builds: string[] = [];
    await using sandboxes = batch({
      runners: harnesses,
      observeBuild: ({ what, state }) => void (state.kind === 'built' && builds.push(what)),
    });
    const seen: string[] = [];
    for (const harness of ['one', 'two', 'three', 'command']) {
      const sandbox = await sandboxes.take(specOf('', { ...change, harness }), never);
      seen.push(await printed(sandbox.container, 'cat made; ls /offsite/cli 2> /dev/null'));
      sandboxes.giveBack(sandbox);
    }
    return { builds, seen };
  };

  test('is done once for all harnesses and for a check, which share no harness', async () => {
    const { builds, seen } = await prepared({ prepare: `${uuid} > made; ls /offsite` });
    expect(builds).toEqual(['install of one', 'prepare of case', 'install of two', 'install of three']);
    const [made] = seen[0]?.split('\n') ?? [];
    expect(seen).toEqual([`${made}\none\n`, `${made}\ntwo\n`, `${made}\nthree\n`, `${made}\n`]);
  });

  test('is done for each harness if it names the folder of the harness', async () => {
    const { builds, seen } = await prepared({ prepare: 'ls -d /offsite/cli/* > made || true' });
    expect(builds.filter((what) => what === 'prepare of case')).toHaveLength(4);
    expect(seen[1]).toBe('/offsite/cli/two\ntwo\n');
  });

  test('is done once for all harnesses after the install of a profile', async () => {
    const profile = profileOf({ install: `${uuid} > /opt/profile` });
    const { builds } = await prepared({ profile, prepare: `cp /opt/profile made; : ${randomUUID()}` });
    expect(builds.sort()).toEqual(['install of profile default', 'prepare of case']);
  });
});

test('no sandbox, and no image, is made of what holds a key, in whatever way it is written', async () => {
  const key = 'sk-live-Zq8/Xk2mN7vR4';
  const keys = new KnownKeys([['MODEL_KEY', key]]);
  const host = { variables: {}, credentials: new Set<string>(), keys };
  await using sandboxes = batch({ host });
  const files = [{ path: '/opt/tool', content: Buffer.from(`a: ${key.replace('/', '\\/')}\n`) }];
  const specs = {
    prompt: specOf('', { prompt: `use ${key}` }),
    prepare: specOf('', { prepare: `echo ${Buffer.from(key).toString('base64')} > token` }),
    'variables.deep[0]': specOf('', { variables: { deep: [encodeURIComponent(key)] } }),
    'profile.files[0].content': specOf('', { profile: profileOf({ files }) }),
  };
  for (const [where, spec] of Object.entries(specs)) {
    const refusal = expect.objectContaining({
      code: 'KEY_IN_SANDBOX',
      message: expect.stringContaining(where),
    });
    await expect(sandboxes.take(spec, never)).rejects.toEqual(refusal);
    await expect(sandboxes.prepare(spec, never)).rejects.toEqual(refusal);
  }
});

test('what the host passes is seen by every command and is in no image; another value is another preparation', async () => {
  const prepared: string[] = [];
  for (const TEAM of ['blue', 'green']) {
    await using sandboxes = batch({
      host: { variables: { TEAM, OTHER: 'no' }, credentials: new Set(), keys: new KnownKeys([]) },
    });
    const spec = specOf('', { prepare: 'echo "$TEAM $OTHER" > team' }, { passEnv: ['TEAM'] });
    const sandbox = await sandboxes.take(spec, never);
    prepared.push(await printed(sandbox.container, 'cat team; echo "$TEAM $OTHER"'));
    const inspected = await dockerOf(engine).getContainer(sandbox.container.id).inspect();
    expect(
      JSON.stringify([inspected, await dockerOf(engine).getImage(inspected.Image).inspect()]),
    ).not.toContain(TEAM);
    sandboxes.giveBack(sandbox);
  }
  expect(prepared).toEqual(['blue \nblue \n', 'green \ngreen \n']);
});

describe('the second trial of a case', () => {
  test('costs no look at images: its sandbox is made and started', async () => {
    await using sandboxes = batch();
    const spec = specOf('', { prepare: `${uuid} > made` });
    sandboxes.giveBack(await sandboxes.take(spec, never));
    // The first one's removal, and whatever went before.
    await until(async () => (await trialContainers()).length === 0);
    await markerRuns(engine);
    const before = engine.roundTrips;
    const sandbox = await sandboxes.take({ ...spec, ordinal: 1 }, never);
    expect(engine.roundTrips - before).toBe(2);
    sandboxes.giveBack(sandbox);
  });

  test('has its image made anew where somebody removed it', async () => {
    await using sandboxes = batch();
    const spec = specOf('', { prepare: `${uuid} > made` });
    const first = await sandboxes.take(spec, never);
    const one = await printed(first.container, 'cat made');
    const { Image } = await dockerOf(engine).getContainer(first.container.id).inspect();
    await first.container.remove();
    await dockerOf(engine).getImage(Image).remove();
    const second = await sandboxes.take({ ...spec, ordinal: 1 }, never);
    expect(await printed(second.container, 'cat made')).not.toBe(one);
    sandboxes.giveBack(second);
  });

  const trialContainers = () =>
    dockerOf(engine).listContainers({
      all: true,
      filters: { label: [`offsite.instance=${engine.instance}`, 'offsite.run'] },
    });
});
