import { duration } from '../../output/quantities.ts';
import { engineCheck } from '../check.ts';

/**
 * Milliseconds. Times of commands come from the engine's clock, all others from ours; within a second nobody
 * sees the difference.
 */
const tolerated = 1_000;

export const engineClock = engineCheck("engine's clock", async ({ capabilities: { clockAheadMs } }) => {
  const apart = Math.abs(clockAheadMs);
  const found = `${duration(apart)} ${clockAheadMs < 0 ? 'behind' : 'ahead of'} this machine's`;
  if (apart <= tolerated) return { state: 'ok', found };
  const mend =
    'Set both clocks by NTP (a virtual machine that slept is often behind); else times of commands will be off.';
  return { state: 'warn', found, mend };
});
