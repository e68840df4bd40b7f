import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { systemClock } from '../../src/base/clock.ts';
import { engineReady } from '../set-up/engine-readiness.ts';
import type { EngineGround, TestEngine } from './test-engine.ts';

interface ServiceProcess {
  /** For people: `dockerd`. */
  name: string;
  home: { socketPath: string; logPath: string };
  /** Starts the process. */
  launch(): Promise<ChildProcess>;
  ground: EngineGround;
}

/** Starts and kills the process of an engine's service. */
export function serviceProcess({
  name,
  home,
  launch,
  ground,
}: ServiceProcess): Pick<TestEngine, 'start' | 'kill'> {
  let running: ChildProcess | undefined;
  const end = () => {
    const code = running?.exitCode ?? running?.signalCode;
    return code === null || code === undefined ? undefined : `ended with ${code}`;
  };
  return {
    async start() {
      if (running === undefined || end() !== undefined) {
        running = await launch();
        ground.log(`Started ${name} (process ${running.pid}); its log is ${home.logPath}.`);
      }
      await engineReady({ home, clock: systemClock, signal: ground.signal, gone: async () => end() });
    },
    async kill() {
      if (running === undefined || end() !== undefined) return;
      const gone = once(running, 'exit');
      running.kill('SIGKILL');
      await gone;
    },
  };
}
