import { copyFile, cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { clearLeftovers } from '../set-up/clear-leftovers.ts';
import { addBridge } from './bridge.ts';
import { openRoom, type Room, type RoomRequest } from './room.ts';
import { serviceProcess } from './service-process.ts';
import type { EngineGround, TestEngine } from './test-engine.ts';

export interface Dockerd extends Pick<RoomRequest, 'root' | 'withoutUnified'> {
  /** The program, where it is not the root's own. */
  program?: string;
  /** Settings of `daemon.json`. */
  settings?: Record<string, unknown>;
  /** Arranges what it needs in its root. */
  prepare?: (room: Room) => Promise<void>;
  /**
   * Listens with TLS too, at this address and with the files of a folder: `ca.pem`, `cert.pem`, `key.pem`.
   */
  tls?: { host: string; files: string };
  ground: EngineGround;
}

/** Starts a dockerd of its own, with its own containerd, beside whatever runs on this machine. Needs root. */
export async function startDockerd(dockerd: Dockerd): Promise<TestEngine> {
  const { root, withoutUnified, program, settings = {}, prepare, ground } = dockerd;
  await using stack = new AsyncDisposableStack();
  const room = stack.use(await openRoom({ root, withoutUnified }));
  const { folder } = room;
  const at = (name: string) => join(folder, name);
  const daemonFile = { path: at('docker.pid'), program: 'dockerd' };
  const containerdFile = { path: at('exec/containerd/containerd.pid'), program: 'containerd' };
  const home = {
    socketPath: at('docker.sock'),
    logPath: at('dockerd.log'),
    args: [],
    daemonFile,
    leftovers: [daemonFile, containerdFile],
  };
  await writeFile(at('daemon.json'), JSON.stringify(settings));
  if (program !== undefined) await copyFile(program, at('dockerd'));
  await prepare?.(room);
  const args = [
    '--host',
    `unix://${home.socketPath}`,
    '--pidfile',
    daemonFile.path,
    '--data-root',
    at('data'),
    '--exec-root',
    at('exec'),
    '--config-file',
    at('daemon.json'),
    '--userland-proxy=false',
  ];
  if (dockerd.tls !== undefined) {
    const { host, files } = dockerd.tls;
    await cp(files, at('tls'), { recursive: true });
    const named = ['ca', 'cert', 'key'].flatMap((name) => [
      `--tls${name === 'ca' ? 'cacert' : name}`,
      at(`tls/${name}.pem`),
    ]);
    args.push('--host', host, '--tlsverify', ...named);
  }
  const bridge = stack.use(await addBridge());
  args.push('--bridge', bridge.name, '--iptables=false', '--ip6tables=false', '--ip-masq=false');
  const engine: TestEngine = {
    host: `unix://${home.socketPath}`,
    socketPath: home.socketPath,
    ...serviceProcess({
      name: 'dockerd',
      home,
      ground,
      async launch() {
        await clearLeftovers(home.leftovers);
        return room.start(program === undefined ? 'dockerd' : at('dockerd'), args, home.logPath);
      },
    }),
    async [Symbol.asyncDispose]() {
      await engine.kill();
      await disposal.disposeAsync();
    },
  };
  await engine.start();
  const disposal = stack.move();
  return engine;
}
