import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine } from '../../src/engine/engine.ts';
import { freePort } from '../free-port.ts';
import { testImage } from '../trial/test-image.ts';
import { dockerOf } from './docker-of.ts';
import { testSpec, until } from './engine-fixture.ts';

/** The registry of the distribution project, on a port of this machine that the engine reaches without TLS. */
export interface LocalRegistry extends AsyncDisposable {
  /** Its address: `127.0.0.1:PORT`. */
  host: string;
  /** Where it is asked: the method and the path of each request so far. */
  requests(): string[];
  /** Puts an image of a Dockerfile there, takes it away from the engine, and returns its name. */
  publish(name: string, dockerfile: string): Promise<string>;
  /** Ends its process. */
  stop(): Promise<void>;
}

export interface Account {
  username: string;
  password: string;
}

/** @param account whom it serves; default: everybody */
export async function localRegistry(engine: Engine, account?: Account): Promise<LocalRegistry> {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-registry-'));
  const { program, htpasswd } = await registryFiles(engine, account);
  writeFileSync(join(folder, 'registry'), program, { mode: 0o755 });
  writeFileSync(join(folder, 'htpasswd'), htpasswd);
  const host = `${process.env.OFFSITE_TEST_MACHINE ?? '127.0.0.1'}:${await freePort()}`;
  const settings = {
    version: '0.1',
    log: { accesslog: { disabled: false }, level: 'error' },
    storage: { filesystem: { rootdirectory: join(folder, 'data') } },
    http: { addr: host },
    ...(account && { auth: { htpasswd: { realm: 'test', path: join(folder, 'htpasswd') } } }),
  };
  writeFileSync(join(folder, 'config.yml'), JSON.stringify(settings));
  const server = spawn(join(folder, 'registry'), ['serve', join(folder, 'config.yml')]);
  let log = '';
  for (const stream of [server.stdout, server.stderr]) stream.on('data', (piece) => (log += piece));
  const ended = once(server, 'exit');
  const stop = async () => {
    server.kill('SIGKILL');
    await ended;
  };
  await until(async () => (await fetch(`http://${host}/v2/`).catch(() => undefined)) !== undefined);
  const docker = dockerOf(engine);
  return {
    host,
    requests: () => [...log.matchAll(/"((?:GET|HEAD) \/v2\/\S+) HTTP/g)].map(([, line]) => line ?? ''),
    async publish(name, dockerfile) {
      await using built = await testImage(engine, dockerfile);
      const [repo, tag = 'latest'] = [`${host}/${name.split(':')[0]}`, name.split(':')[1]];
      await docker.getImage(built.name).tag({ repo, tag });
      const pushed = await docker.getImage(repo).push({ tag, authconfig: account ?? {} });
      let answer = '';
      for await (const piece of pushed) answer += piece;
      if (answer.includes('errorDetail')) throw new Error(answer);
      await docker.getImage(`${repo}:${tag}`).remove();
      return `${host}/${name}`;
    },
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Debian's package of the registry, from a container of an image that has it. */
async function registryFiles(
  engine: Engine,
  account: Account | undefined,
): Promise<{ program: Buffer; htpasswd: string }> {
  const image = await testImage(
    engine,
    'FROM offsite/base\nRUN apt-get update && apt-get install -y --no-install-recommends docker-registry apache2-utils',
  );
  await using _image = image;
  const { id: imageId = '' } = (await engine.findImage(image.name)) ?? {};
  await using container = await engine.createContainer({ ...(await testSpec(engine)), imageId });
  await container.start();
  const { username = 'nobody', password = '' } = account ?? {};
  const made = await container.exec({
    argv: ['htpasswd', '-nbB', username, password],
    timeoutMs: 60_000,
  });
  const pieces: Buffer[] = [];
  for await (const entry of container.archive('/usr/bin/docker-registry'))
    if (entry.type === 'file') for await (const piece of entry.content()) pieces.push(piece);
  return { program: Buffer.concat(pieces), htpasswd: made.stdout.text };
}
