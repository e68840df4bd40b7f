import { duration } from '../../../text/quantities.ts';
import { engineCheck } from '../check.ts';

/**
 * Milliseconds. The times of commands come from the engine's clock, all others from ours. A difference below
 * one second does not matter.
 */
const tolerated = 1_000;

export const engineClock = engineCheck("engine's clock", async ({ capabilities: { clockAheadMs } }) => {
  const apart = Math.abs(clockAheadMs);
  const found = `${duration(apart)} ${clockAheadMs < 0 ? 'behind' : 'ahead of'} this machine's`;
  if (apart <= tolerated) return { state: 'ok', found };
  const fix =
    'Set both clocks by NTP, else the times of commands are wrong. A machine that slept is often behind.';
  return { state: 'warn', found, fix };
});
