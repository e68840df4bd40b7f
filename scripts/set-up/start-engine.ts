import { spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import type { Clock } from '../../src/base/clock.ts';
import { runHostProgram, withSystemPath } from '../../src/base/host-program.ts';
import { messageOf } from '../../src/base/offsite-error.ts';
import { clearLeftovers, isRunning } from './clear-leftovers.ts';
import type { EngineHome } from './engine-home.ts';
import { engineReady } from './engine-readiness.ts';

const mostStarts = 3;

export interface EngineStart {
  how: 'systemd' | 'detached';
  home: EngineHome;
  log: (line: string) => void;
  env: NodeJS.ProcessEnv;
  clock: Clock;
  signal?: AbortSignal;
}

/** Starts the installed engine and waits until it answers. Throws an infrastructure error if it does not. */
export async function startEngine({ how, home, log, env, clock, signal }: EngineStart): Promise<void> {
  if (how === 'systemd') {
    await runHostProgram({
      command: 'systemctl',
      args: ['start', 'docker'],
      purpose: 'start the Docker engine',
      env: withSystemPath(env),
      deadlineMs: 120_000,
      signal,
      hint: "See 'journalctl -u docker'.",
    });
    return engineReady({ home, clock, signal });
  }
  // The package's own script may already have started one, which then only has to become ready.
  const running = () => isRunning(home.daemonFile);
  if (await running()) {
    const gone = async () => ((await running()) ? undefined : 'was starting already, and ended');
    return engineReady({ home, clock, signal, gone });
  }
  for (let start = 1; ; start++) {
    for (const path of await clearLeftovers(home.leftovers))
      log(`Removed ${path}, left by an engine that was killed.`);
    const daemon = await spawnDaemon(home, env);
    log(`Started dockerd (process ${daemon.pid}); its log is ${home.logPath}.`);
    try {
      return await engineReady({ home, clock, signal, gone: daemon.gone });
    } catch (error) {
      if (start === mostStarts || !endedForLackOfTime(error)) throw error;
      log('dockerd gave up on its containerd, which had too little time to start; starting it again.');
    }
  }
}

/** dockerd itself waits only seconds for its containerd, which is too short for a busy machine. */
function endedForLackOfTime(error: unknown): boolean {
  return messageOf(error).includes('timeout waiting for containerd to start');
}

/** Runs in its own session, so that it outlives this process and no terminal's Ctrl-C reaches it. */
async function spawnDaemon(home: EngineHome, env: NodeJS.ProcessEnv) {
  const output = await open(home.logPath, 'a');
  try {
    const daemon = spawn('dockerd', home.args, {
      cwd: '/',
      env: daemonEnvironment(env),
      detached: true,
      stdio: ['ignore', output.fd, output.fd],
    });
    let end: string | undefined;
    daemon.on('error', (error) => {
      end = `could not be started: ${error.message}`;
    });
    daemon.on('exit', (code, signal) => {
      end = `ended with ${code === null ? signal : `exit code ${code}`}`;
    });
    daemon.unref();
    return { pid: daemon.pid, gone: async () => end };
  } finally {
    await output.close(); // the daemon has its own copy
  }
}

/** This process's environment without npm's settings and PATH, and without the addresses of other engines. */
function daemonEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => !/^(npm_|node|docker_|init_cwd)/i.test(name));
  return withSystemPath({ ...Object.fromEntries(kept), PATH: '/usr/local/sbin:/usr/local/bin' });
}
