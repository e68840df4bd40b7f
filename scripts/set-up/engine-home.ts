import type { ProcessFile } from './clear-leftovers.ts';

/** Where an engine that we start keeps what concerns us. */
export interface EngineHome {
  socketPath: string;
  logPath: string;
  /** Arguments of dockerd. */
  args: readonly string[];
  /** The daemon's own, whose program is the engine itself. */
  daemonFile: ProcessFile;
  /** What a killed engine leaves, and what stops the next one. */
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
