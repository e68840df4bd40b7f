import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { authority, certificate } from '../../test/engine/certificates.ts';
import { sshServer } from '../../test/engine/ssh-server.ts';
import { freePort } from '../../test/free-port.ts';
import { debianRoot } from './debian-root.ts';
import { bookworm } from './docker.ts';
import { startDockerd } from './dockerd.ts';
import type { EngineEntry, EngineGround, TestEngine } from './test-engine.ts';

/** Engines that are reached in the same way as an engine on another machine. */
export const remoteEngines: readonly EngineEntry[] = [
  { name: 'docker-20-ssh', title: 'Docker over ssh', open: overSsh },
  { name: 'docker-20-tls', title: 'Docker over TLS', open: overTls },
];

/** Behind a real sshd on a port of the loopback. */
async function overSsh(ground: EngineGround): Promise<TestEngine> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await sshServer());
  const engine = stack.use(await startDockerd({ root: await debianRoot(bookworm, ground), ground }));
  const disposal = stack.move();
  return {
    start: engine.start,
    kill: engine.kill,
    socketPath: engine.socketPath,
    host: `${server.host}${engine.socketPath}`,
    env: { PATH: server.env.PATH },
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

/** With certificates for both sides, on a port of the loopback. */
async function overTls(ground: EngineGround): Promise<TestEngine> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.adopt(await mkdtempDisposable(join(tmpdir(), 'offsite-tls-')), (one) => one.remove());
  const at = (name: string) => join(folder.path, name);
  await authority(at('ours'));
  await certificate(at('server'), at('ours'), 'subjectAltName=IP:127.0.0.1');
  await certificate(at('client'), at('ours'), 'extendedKeyUsage=clientAuth');
  const host = `tcp://127.0.0.1:${await freePort()}`;
  const root = await debianRoot(bookworm, ground);
  const engine = stack.use(await startDockerd({ root, tls: { host, files: at('server') }, ground }));
  const disposal = stack.move();
  return {
    start: engine.start,
    kill: engine.kill,
    socketPath: engine.socketPath,
    host,
    env: { DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: at('client') },
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}
