import { access } from 'node:fs/promises';
import { homedir } from 'node:os';
import { findHostProgram } from '../../src/base-image/host-program.ts';
import { installDebianPackages } from '../../src/base-image/install-debian-packages.ts';
import type { During } from '../../src/base-image/progress.ts';
import type { Clock } from '../../src/clock.ts';
import { engineCandidates } from './engine-candidates.ts';
import { systemEngine } from './engine-home.ts';
import { type FoundEngine, findEngine } from './find-engine.ts';
import { type Machine, planEngine } from './installation.ts';
import { startEngine } from './start-engine.ts';

export interface EnsureEngine {
  env: NodeJS.ProcessEnv;
  log: (line: string) => void;
  during: During;
  clock: Clock;
  signal?: AbortSignal;
}

/** Finds a running engine, or starts the installed one, or installs Debian's; throws what the user has to do. */
export async function ensureEngine({ env, log, during, clock, signal }: EnsureEngine): Promise<FoundEngine> {
  const found = await findEngine(await engineCandidates(env, homedir()), signal);
  if (found !== undefined) return found;
  const plan = planEngine(await thisMachine(env));
  if (plan.install) {
    log('There is no Docker engine on this machine; installing and starting the one of its distribution.');
    await during('Installing docker.io', () =>
      installDebianPackages({ packages: ['docker.io'], env, signal }),
    );
  }
  const start = { how: plan.start, home: systemEngine, log, env, clock, signal };
  await during('Starting the Docker engine', () => startEngine(start));
  return { address: { socketPath: systemEngine.socketPath }, namedBy: 'the engine just started' };
}

async function thisMachine(env: NodeJS.ProcessEnv): Promise<Machine> {
  return {
    platform: process.platform,
    uid: process.geteuid?.(),
    hasDockerd: (await findHostProgram('dockerd', env)) !== undefined,
    hasAptGet: (await findHostProgram('apt-get', env)) !== undefined,
    // sd_booted(3): this folder is there exactly when systemd is the init system.
    hasSystemd: await access('/run/systemd/system').then(
      () => true,
      () => false,
    ),
    noInstall: env.OFFSITE_NO_INSTALL === '1',
  };
}
