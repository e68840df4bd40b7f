import type { ConformanceCheck } from './check.ts';
import { commandChecks, terminalChecks } from './commands.ts';
import { containerChecks } from './containers.ts';
import { fileChecks } from './files.ts';
import { imageChecks, volumeChecks } from './images.ts';
import { limitChecks } from './limits.ts';
import { serviceChecks, wallChecks } from './walls.ts';

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
