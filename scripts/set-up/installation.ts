import { OffsiteError } from '../../src/base/offsite-error.ts';

/** What decides whether Offsite may install an engine on this machine. */
export interface Machine {
  platform: NodeJS.Platform;
  /** Effective user id; undefined if the platform has none. */
  uid: number | undefined;
  hasDockerd: boolean;
  hasAptGet: boolean;
  hasSystemd: boolean;
  /** The user said OFFSITE_NO_INSTALL=1: leave the machine as it is. */
  noInstall: boolean;
}

/** How to get an engine on this machine. */
export interface EnginePlan {
  install: boolean;
  start: 'systemd' | 'detached';
}

/** Decides how. Throws an `input` error that says what is missing and how to get it. */
export function planEngine(machine: Machine): EnginePlan {
  const { platform, uid, hasDockerd, hasAptGet, hasSystemd, noInstall } = machine;
  const start = hasSystemd ? 'systemd' : 'detached';
  if (platform === 'darwin')
    throw missing('this is macOS', 'Start Docker Desktop, Colima or Podman, then run this again.');
  if (platform !== 'linux') {
    throw missing(
      `this is ${platform}`,
      'Start Docker Desktop or Podman, or work inside WSL, then run this again.',
    );
  }
  if (noInstall)
    throw missing('OFFSITE_NO_INSTALL forbids changing this machine', linuxHint(hasDockerd, hasSystemd));
  if (uid !== 0) throw missing('it takes root to provide one', linuxHint(hasDockerd, hasSystemd));
  if (!hasDockerd && !hasAptGet)
    throw missing('there is no apt-get to install one with', linuxHint(hasDockerd, hasSystemd));
  return { install: !hasDockerd, start };
}

function missing(why: string, hint: string): OffsiteError {
  return new OffsiteError(`Offsite needs a Docker engine, none is running, and ${why}.`, {
    code: 'ENGINE_MISSING',
    kind: 'input',
    hint,
  });
}

function linuxHint(hasDockerd: boolean, hasSystemd: boolean): string {
  const start = hasSystemd ? 'sudo systemctl start docker' : 'sudo dockerd';
  if (hasDockerd) return `One is installed: start it with '${start}', then run this again.`;
  return (
    "Install Docker ('sudo apt-get install docker.io' on Debian and Ubuntu) or Podman and start it, " +
    'or set DOCKER_HOST.'
  );
}
