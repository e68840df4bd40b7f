/** Where things are in every sandbox. */
export const sandboxPaths = {
  workspace: '/workspace',
  /** What Offsite puts into a sandbox is below this. */
  own: '/offsite',
  prompt: '/offsite/prompt.txt',
  prepare: '/offsite/prepare',
  /** The harness's own files, outside the workspace. */
  harness: '/offsite/harness',
  /** The host's extra certificates, and those with the image's own. */
  extraCertificates: '/offsite/ca.pem',
  certificates: '/offsite/ca-bundle.pem',
  /** A validator gets a folder of its own below. Not in `own`, which may be the sandbox's user's. */
  validators: '/offsite-validators',
} as const;

/** What is graded, what is ours, and what the kernel shows: no change there is one of the system. */
export const notTheSystem: readonly string[] = [
  sandboxPaths.workspace,
  sandboxPaths.own,
  '/dev',
  '/proc',
  '/sys',
];

/**
 * Where any program that verify runs may leave what it likes: a change there says nothing about the system.
 */
export const scratchPaths: readonly string[] = [
  ...notTheSystem,
  '/tmp',
  '/var/tmp',
  '/run',
  '/var/log',
  '/var/cache',
  '/root/.cache',
  '/root/.npm/_cacache',
  '/root/.npm/_logs',
];

/**
 * Where programs keep state whose names and contents differ each time, one entry below for each program:
 * databases, lock files, caches of build tools.
 */
export const statePaths: readonly string[] = [
  '/home',
  '/srv',
  '/var/lib',
  '/root',
  // What lies beside these below `.local` and `.config` is for programs to find, and theirs to run.
  '/root/.config',
  '/root/.local/share',
  '/root/.local/state',
];
