import { access } from 'node:fs/promises';
import type { Clock } from '../../src/base/clock.ts';
import { findHostProgram } from '../../src/base/host-program.ts';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import type { During } from '../../src/base/progress.ts';
import { installDebianPackages } from '../../src/base-image/build-from-debian.ts';
import {
  type Connection,
  type ConnectRequest,
  connect,
  EngineUnreachable,
} from '../../src/engine/connection/connect.ts';
import { systemEngine } from './engine-home.ts';
import { type Machine, planEngine } from './installation.ts';
import { startEngine } from './start-engine.ts';

export interface EnsureEngine {
  env: NodeJS.ProcessEnv;
  log: (line: string) => void;
  during: During;
  clock: Clock;
  signal?: AbortSignal;
}

/**
 * Connects to a running engine, if there is one that Offsite itself would find. Otherwise starts the
 * installed one, or installs Debian's. Throws an error that says what the user has to do.
 */
export async function ensureEngine({ env, log, during, clock, signal }: EnsureEngine): Promise<Connection> {
  const found = await runningEngine({ host: undefined, env, clock, signal });
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
  return connect({ host: `unix://${systemEngine.socketPath}`, env, clock, signal });
}

/** Undefined if none runs and the user named none, so that one may be installed. */
async function runningEngine(request: ConnectRequest): Promise<Connection | undefined> {
  try {
    return await connect(request);
  } catch (error) {
    if (!(error instanceof EngineUnreachable)) throw error;
    if (!error.isNamed && !error.isForbidden) return undefined;
    const { message, code, hint = '' } = error;
    throw new OffsiteError(message, { code, kind: 'input', hint, cause: error });
  }
}

async function thisMachine(env: NodeJS.ProcessEnv): Promise<Machine> {
  return {
    platform: process.platform,
    uid: process.geteuid?.(),
    hasDockerd: (await findHostProgram('dockerd', env)) !== undefined,
    hasAptGet: (await findHostProgram('apt-get', env)) !== undefined,
    // sd_booted(3): this folder exists only if systemd is the init system.
    hasSystemd: await access('/run/systemd/system').then(
      () => true,
      () => false,
    ),
    noInstall: env.OFFSITE_NO_INSTALL === '1',
  };
}
