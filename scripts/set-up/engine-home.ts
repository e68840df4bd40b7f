import type { ProcessFile } from './clear-leftovers.ts';

/** The files of an engine that Offsite starts. */
export interface EngineHome {
  socketPath: string;
  logPath: string;
  /** Arguments of dockerd. */
  args: readonly string[];
  /** The daemon's own file, whose program is the engine itself. */
  daemonFile: ProcessFile;
  /** Files that a killed engine leaves and that stop the next one. */
  leftovers: readonly ProcessFile[];
}

const daemonFile = { path: '/var/run/docker.pid', program: 'dockerd' };

/** The engine as Debian's package sets it up. */
export const systemEngine: EngineHome = {
  socketPath: '/var/run/docker.sock',
  logPath: '/var/log/offsite-dockerd.log',
  args: [],
  daemonFile,
  leftovers: [daemonFile, { path: '/var/run/docker/containerd/containerd.pid', program: 'containerd' }],
};
