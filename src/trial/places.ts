/** Where things are in every sandbox. */
export const places = {
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
