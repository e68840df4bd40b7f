/** Paths that are the same in every sandbox. */
export const sandboxPaths = {
  /** Where the workspace is if neither the case nor its image says so. */
  workspace: '/workspace',
  /** Offsite puts its own files into a sandbox below this folder. */
  own: '/offsite',
  prompt: '/offsite/prompt.txt',
  prepare: '/offsite/prepare',
  /** What the program that the environment starts printed. */
  startUp: '/offsite/start-up',
  /** The harness's own files, outside the workspace. */
  harness: '/offsite/harness',
  /** The host's extra certificates; `certificates` holds these and the image's own. */
  extraCertificates: '/offsite/ca.pem',
  certificates: '/offsite/ca-bundle.pem',
  /**
   * Each validator gets its own folder below this one. It is not below `own`, which the sandbox's user may
   * own.
   */
  validators: '/offsite-validators',
  /** The Node of validators in images that have none. No user of a sandbox owns it either. */
  validatorNode: '/offsite-node',
} as const;

/**
 * Paths where a change is not a change of the system, besides the graded workspace: our own files, and what
 * the kernel shows.
 */
export const notTheSystem: readonly string[] = [
  sandboxPaths.own,
  sandboxPaths.validatorNode,
  '/dev',
  '/proc',
  '/sys',
];

/** Paths where every program that verify runs may write. A change there says nothing about the system. */
export const scratchPaths: readonly string[] = [
  ...notTheSystem,
  '/tmp',
  '/var/tmp',
  '/run',
  '/var/log',
  '/var/cache',
];

/**
 * Folders where programs may add files. They also run what they find there (package managers, browsers,
 * compiled programs), so files that the image has are part of the system. `/root` stands for every home.
 */
export const cachePaths: readonly string[] = ['/root/.cache', '/root/.npm/_cacache', '/root/.npm/_logs'];

/**
 * Folders where programs keep state with different names and contents each time, such as databases, lock
 * files and caches of build tools. Each program has its own entry in such a folder. `/root` stands for every
 * home.
 */
export const statePaths: readonly string[] = [
  '/srv',
  '/var/lib',
  '/root',
  // Other entries of `.local` and `.config` are found and run by programs, so they are not state.
  '/root/.config',
  '/root/.local/share',
  '/root/.local/state',
];

/** Folders that contain all of {@link cachePaths} and {@link statePaths}. */
export const stateRoots: readonly string[] = ['/root', '/home', '/srv', '/var/lib'];
