import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import type { PullPolicy } from '../../src/engine/pull/obtain-image.ts';
import { noEnvironment } from '../../src/suite/environment.ts';
import type { BuildEvent } from '../../src/trial/prepare/obtain-image.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { testEngine } from '../engine/engine-fixture.ts';
import { type LocalRegistry, localRegistry } from '../engine/local-registry.ts';
import { freePort } from '../free-port.ts';
import { openTrialBench } from './trial-bench.ts';

const account = { username: 'reader', password: 'the-password-of-the-registry' };
const dockerfile = 'FROM offsite/base\nRUN echo pulled > /etc/kind';
let engine: Engine;
let open: LocalRegistry;
let closed: LocalRegistry;
let folder: string;

beforeAll(async () => {
  engine = await testEngine();
  [open, closed] = await Promise.all([localRegistry(engine), localRegistry(engine, account)]);
  folder = mkdtempSync(join(tmpdir(), 'offsite-pull-'));
});
afterAll(async () => {
  await Promise.all([open?.[Symbol.asyncDispose](), closed?.[Symbol.asyncDispose]()]);
  await engine?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

let count = 0;
/** A place for Docker's settings. */
function dockerFolder(config: object): string {
  const path = join(folder, `docker-${count++}`);
  mkdirSync(path);
  writeFileSync(join(path, 'config.json'), JSON.stringify(config));
  return path;
}

/** Trials whose case names an image, with what was reported of pulls. */
async function bench(pull: PullPolicy, env: NodeJS.ProcessEnv = {}) {
  const connected = await testEngine({ pull, env: { ...process.env, DOCKER_CONFIG: folder, ...env } });
  const events: BuildEvent[] = [];
  const opened = await openTrialBench({
    engine: connected,
    observeBuild: (event) => void events.push(event),
  });
  const trial = (name: string, run = 'cat /etc/kind') =>
    opened.trial(run, {
      environment: { ...noEnvironment, image: { name, place: 'suite.yaml:3:5' } },
      verify: 'true',
    });
  return {
    trial,
    states: () => events.map(({ what, state }) => `${what}: ${state.kind}`),
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]();
      await connected[Symbol.asyncDispose]();
    },
  };
}

const removed = (name: string) => dockerOf(engine).getImage(name).remove({ force: true });

describe('an image that the engine does not have', () => {
  test('is pulled once for all who name it, shown, and recorded with its digest and platform', async () => {
    const name = await open.publish('once:1', dockerfile);
    await using trials = await bench('missing');
    const results = await Promise.all([trials.trial(name), trials.trial(name), trials.trial(name)]);
    expect(results.map(({ verdict }) => verdict)).toEqual(['passed', 'passed', 'passed']);
    expect(results[0]?.trajectory?.[0]?.output).toBe('pulled\n');
    expect(open.requests().filter((line) => line.endsWith('/v2/once/manifests/1')).length).toBeLessThan(3);
    expect(results[0]?.images).toEqual([
      {
        name,
        id: expect.stringMatching(/^sha256:/),
        platform: expect.stringMatching(/^linux\/\w+/),
        digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      },
    ]);
    expect(trials.states()).toContain(`pull of ${name}: running`);
    expect(trials.states()).toContain(`pull of ${name}: built`);
    await removed(name);
  });

  test('without a tag is the latest one alone', async () => {
    await open.publish('tags:other', 'FROM offsite/base\nRUN echo other > /etc/kind');
    const name = (await open.publish('tags:latest', dockerfile)).replace(':latest', '');
    await using trials = await bench('missing');
    expect((await trials.trial(name)).verdict).toBe('passed');
    expect(await engine.findImage(`${name}:other`)).toBeUndefined();
    await removed(name);
  });

  test('is asked for by no policy `never`, and again by `always`', async () => {
    const name = await open.publish('policy:1', 'FROM offsite/base\nRUN echo first > /etc/kind');
    await using never = await bench('never');
    expect((await never.trial(name)).cause).toMatchObject({
      kind: 'task',
      message: expect.stringContaining(`Pull it (docker pull ${name})`),
    });
    await using missing = await bench('missing');
    expect((await missing.trial(name)).trajectory?.[0]?.output).toBe('first\n');
    await dockerOf(engine).getImage(name).tag({ repo: 'offsite-test/first', tag: 'kept' });
    await removed(name);
    await open.publish('policy:1', 'FROM offsite/base\nRUN echo second > /etc/kind');
    await dockerOf(engine)
      .getImage('offsite-test/first:kept')
      .tag({ repo: `${open.host}/policy`, tag: '1' });
    await using again = await bench('missing');
    expect((await again.trial(name)).trajectory?.[0]?.output).toBe('first\n');
    await using always = await bench('always');
    expect((await always.trial(name)).trajectory?.[0]?.output).toBe('second\n');
    await removed(name);
    await removed('offsite-test/first:kept');
  });

  test('that the registry does not have is the case’s fault, asked for once, and told once', async () => {
    const name = `${open.host}/nothing:here`;
    await using trials = await bench('missing');
    const [first, second] = [await trials.trial(name), await trials.trial(name)];
    expect(first).toMatchObject({ verdict: 'void', cause: { kind: 'task', phase: 'sandbox' } });
    expect(first.cause?.message).toMatch(
      /^suite\.yaml:3:5: the engine has no image \S+, and the registry refuses it: .*(unknown|not found)/,
    );
    expect(first.cause?.message).toContain('map it in `advanced.images` of offsite.yaml');
    expect(second.cause).toEqual(first.cause);
    expect(open.requests().filter((line) => line.includes('/nothing/manifests/here')).length).toBeLessThan(3);
    expect(trials.states().filter((line) => line.endsWith('failed'))).toEqual([
      expect.stringMatching(/^image \S+: failed$/),
    ]);
  });

  test('whose registry is not there, or says nothing, is the machine’s fault', async () => {
    const port = await freePort();
    await using trials = await bench('missing');
    const { cause } = await trials.trial(`127.0.0.1:${port}/nobody:here`);
    expect(cause).toMatchObject({ kind: 'infrastructure', phase: 'sandbox' });
    expect(cause?.message).toMatch(/cannot pull it: .*connection refused.*map it in `advanced.images`/s);
    const deaf = await freePort();
    const silent = createServer().listen(deaf, '127.0.0.1');
    await once(silent, 'listening');
    using _closing = { [Symbol.dispose]: () => void silent.close() };
    const pulled = engine.port.images.pull(`127.0.0.1:${deaf}/nobody:here`, { firstWordMs: 500 });
    await expect(pulled).rejects.toMatchObject({
      code: 'IMAGE_PULL_FAILED',
      message: expect.stringContaining('no registry answered within 0.5 s'),
    });
  });
});

describe('a registry that asks who pulls', () => {
  const { username, password } = account;
  const inBase64 = Buffer.from(`${username}:${password}`).toString('base64');

  test('gets the login that Docker’s settings have, and no sandbox sees any of it', async () => {
    const name = await closed.publish('private:1', dockerfile);
    const config = dockerFolder({ auths: { [`http://${closed.host}/v1/`]: { auth: inBase64 } } });
    await using trials = await bench('missing', { DOCKER_CONFIG: config });
    const look = `cat /etc/kind; env; find / -xdev -type f -newer /etc/kind -size -1M 2> /dev/null | xargs grep -l '${inBase64}\\|${password}' 2> /dev/null; ls -a /root`;
    const result = await trials.trial(name, look);
    expect(result.trajectory?.[0]?.output).toMatch(/^pulled\n/);
    for (const secret of [password, inBase64]) {
      expect(result.trajectory?.[0]?.output).not.toContain(secret);
      expect(JSON.stringify({ ...result, trajectory: [] })).not.toContain(secret);
      expect(trials.states().join()).not.toContain(secret);
    }
    await removed(name);
  });

  test('gets the login of a program for credentials', async () => {
    const name = await closed.publish('helped:1', dockerfile);
    const programs = join(folder, 'programs');
    mkdirSync(programs);
    const answer = JSON.stringify({ ServerURL: closed.host, Username: username, Secret: password });
    writeFileSync(
      join(programs, 'docker-credential-test'),
      `#!/bin/sh\n[ "$1" = get ] && [ "$(cat)" = '${closed.host}' ] && echo '${answer}'\n`,
      { mode: 0o755 },
    );
    const config = dockerFolder({ credHelpers: { [closed.host]: 'test' } });
    const PATH = `${programs}:${process.env.PATH}`;
    await using trials = await bench('missing', { DOCKER_CONFIG: config, PATH });
    expect((await trials.trial(name)).verdict).toBe('passed');
    await removed(name);
  });

  test('cannot be asked if the program for credentials does not work, and its output is not shown', async () => {
    const programs = join(folder, 'broken');
    mkdirSync(programs);
    const write = (name: string, script: string) =>
      writeFileSync(join(programs, `docker-credential-${name}`), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    write('talks', `echo 'my ${password}'`);
    write('fails', `echo 'my ${password}' >&2; exit 3`);
    for (const [helper, why] of [
      ['talks', 'its answer is not a login'],
      ['fails', 'Command failed'],
      ['absent', 'ENOENT'],
    ]) {
      const config = dockerFolder({ credsStore: helper });
      const PATH = `${programs}:${process.env.PATH}`;
      await using trials = await bench('missing', { DOCKER_CONFIG: config, PATH });
      const { cause } = await trials.trial(`${closed.host}/unread:1`);
      expect(cause?.kind).toBe('infrastructure');
      expect(cause?.message).toContain(`docker-credential-${helper}`);
      expect(cause?.message).toContain(why);
      expect(cause?.message).not.toContain(password);
    }
  });

  test('refuses others, with one message that tells what to do', async () => {
    const name = await closed.publish('refused:1', dockerfile);
    await using trials = await bench('missing', { DOCKER_CONFIG: dockerFolder({}) });
    const { cause } = await trials.trial(name);
    expect(cause?.kind).toBe('task');
    expect(cause?.message).toMatch(/the registry refuses it: .*(no basic auth|unauthorized).*docker login/s);
    const wrong = Buffer.from('reader:wrong-password').toString('base64');
    const config = dockerFolder({ auths: { [closed.host]: { auth: wrong } } });
    await using others = await bench('missing', { DOCKER_CONFIG: config });
    const refused = await others.trial(name);
    expect(refused.cause?.kind).toBe('task');
    expect(refused.cause?.message).not.toContain('wrong-password');
  });
});
