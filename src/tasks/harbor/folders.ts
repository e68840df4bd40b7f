/** Folders in containers, by agreement of the format. */

/** Where tests are put, or are in an image that is made for them. */
export const testsFolder = '/tests';

/** Where tests write rewards. */
export const verifierLogs = '/logs/verifier';

/** Whatever is left there is an artifact. */
export const artifactsFolder = '/logs/artifacts';
