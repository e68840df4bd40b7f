import { once } from 'node:events';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../src/clock.ts';
import { clearLeftovers, isRunning } from '../set-up/clear-leftovers.ts';
import { engineReady } from '../set-up/engine-readiness.ts';
import { addBridge } from './bridge.ts';
import { openRoom, type Room, type RoomRequest } from './room.ts';
import type { EngineGround, TestEngine } from './test-engine.ts';

export interface Dockerd extends Pick<RoomRequest, 'root' | 'withoutUnified'> {
  /** The program, where it is not the root's own. */
  program?: string;
  /** Settings of `daemon.json`. */
  settings?: Record<string, unknown>;
  /** Arranges what it needs in its root. */
  prepare?: (room: Room) => Promise<void>;
  /** Starts it through another command, which gets its arguments. */
  through?: (room: Room) => readonly string[];
  /** Its containers have no bridge of this machine, because they have a network stack of their own. */
  ownNetwork?: boolean;
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
    ...{ socketPath: at('docker.sock'), logPath: at('dockerd.log'), args: [], daemonFile },
    leftovers: [daemonFile, containerdFile],
  };
  await writeFile(at('daemon.json'), JSON.stringify(settings));
  if (program !== undefined) await copyFile(program, at('dockerd'));
  await prepare?.(room);
  const args = [
    ...['--host', `unix://${home.socketPath}`, '--pidfile', daemonFile.path],
    ...['--data-root', at('data'), '--exec-root', at('exec'), '--config-file', at('daemon.json')],
    '--userland-proxy=false',
  ];
  if (!dockerd.ownNetwork) {
    const bridge = stack.use(await addBridge());
    args.push('--bridge', bridge.name, '--iptables=false', '--ip6tables=false', '--ip-masq=false');
  }
  const [command = '', ...before] = dockerd.through?.(room) ?? [
    program === undefined ? 'dockerd' : at('dockerd'),
  ];
  let running: Awaited<ReturnType<Room['start']>> | undefined;
  const end = () => {
    const code = running?.exitCode ?? running?.signalCode;
    return code === null || code === undefined ? undefined : `ended with ${code}`;
  };
  const engine: TestEngine = {
    host: `unix://${home.socketPath}`,
    async start() {
      if (running === undefined || end() !== undefined) {
        await clearLeftovers(home.leftovers);
        running = await room.start(command, [...before, ...args], home.logPath);
        ground.log(`Started dockerd (process ${running.pid}); its log is ${home.logPath}.`);
      }
      await engineReady({ home, clock: systemClock, signal: ground.signal, gone: async () => end() });
    },
    async kill() {
      if (running === undefined || end() !== undefined) return;
      const gone = once(running, 'exit');
      // Not the process that was started: a rootless engine has others around it.
      if (await isRunning(daemonFile))
        process.kill(Number(await readFile(daemonFile.path, 'utf8')), 'SIGKILL');
      else running.kill('SIGKILL');
      await gone;
    },
    async [Symbol.asyncDispose]() {
      await engine.kill();
      await disposal.disposeAsync();
    },
  };
  await engine.start();
  const disposal = stack.move();
  return engine;
}
