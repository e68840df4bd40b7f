import { containerChecks, imageChecks, volumeChecks } from './containers.ts';
import { commandChecks, fileChecks, terminalChecks } from './files.ts';
import type { ConformanceCheck } from './testbed.ts';
import { limitChecks, serviceChecks, wallChecks } from './walls.ts';

/** What any engine must do for Offsite. The tests run these, and so does `offsite doctor --deep`. */
export const conformanceChecks: readonly ConformanceCheck[] = [
  ...commandChecks,
  ...terminalChecks,
  ...containerChecks,
  ...limitChecks,
  ...wallChecks,
  ...serviceChecks,
  ...fileChecks,
  ...imageChecks,
  ...volumeChecks,
];
