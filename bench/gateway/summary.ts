import { quantile } from '../table.ts';
import type { ClientTimes } from './client-order.ts';

/** One side's times of all rounds, in milliseconds, and megabytes (10^6) per second. */
export interface Summary {
  p50Ms: number;
  p99Ms: number;
  p50MsAt50: number;
  p99MsAt50: number;
  firstByteP50Ms: number;
  megabytesPerSecondDown: number;
  megabytesPerSecondUp: number;
}

export function summaryOf(times: readonly ClientTimes[], bodyBytes: number): Summary {
  const at = (name: keyof ClientTimes, share: number) =>
    quantile(
      times.flatMap((round) => round[name]),
      share,
    );
  const rate = (ms: number) => bodyBytes / 1000 / ms;
  return {
    p50Ms: at('oneMs', 0.5),
    p99Ms: at('oneMs', 0.99),
    p50MsAt50: at('parallelMs', 0.5),
    p99MsAt50: at('parallelMs', 0.99),
    firstByteP50Ms: at('firstByteMs', 0.5),
    megabytesPerSecondDown: rate(at('downMs', 0.5)),
    megabytesPerSecondUp: rate(at('upMs', 0.5)),
  };
}
