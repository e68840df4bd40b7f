import type { FinishedBatches } from '../../agent/auto-trials.ts';
import { ours, type Printable, stack, text } from '../../text/printable.ts';
import { percent } from '../../text/quantities.ts';

/** What `--trials auto` found out about each variant, for programs. */
export interface PreciseRate {
  variant: string;
  /** The mean of the cases' pass rates; absent if no trial was scored. */
  rate: number | undefined;
  /** Half the width of the 95 % interval, for these cases; absent if it is unknown. */
  halfWidth: number | undefined;
  /** Why no further trials ran: the rate is precise enough, or every case had the most trials allowed. */
  stopped: 'precise' | 'cap' | undefined;
}

export function preciseRates({ rates }: FinishedBatches): PreciseRate[] {
  return rates.map(({ variant, rate, halfWidth, stopped }) => ({ variant, rate, halfWidth, stopped }));
}

/** What {@link preciseRates} returns, for people. */
export function preciseRatesText(rates: readonly PreciseRate[], batches: readonly string[]): Printable {
  return stack([
    ...rates.map(({ variant, rate, halfWidth, stopped }) => {
      if (rate === undefined) return text`${variant}: no trial was scored`;
      const width = halfWidth === undefined ? 'unknown' : (halfWidth * 100).toFixed(1);
      const why =
        stopped === 'precise' ? 'precise enough' : 'stopped before that by --max-trials or void trials';
      const known = ours(`${percent(rate)} ± ${width} points`);
      return text`${variant}: pass rate ${known} on these cases; ${ours(why)}`;
    }),
    text`${batches.length === 1 ? ours('batch') : ours('batches')} ${batches.join('+')}`,
  ]);
}
