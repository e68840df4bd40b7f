import { OffsiteError } from '../../base/offsite-error.ts';
import { fleetMessages } from '../../bounds/fleet.ts';

/** Where, when and in what portions trials of a fleet run. */
export interface PlacingOptions {
  pool: string;
  priority: number;
  window: number;
  slice: number;
}

/** Throws `OPTION_INVALID`. */
export function refuseNumbers({ priority, window, slice }: PlacingOptions): void {
  const longest = fleetMessages.count.slice;
  const most = fleetMessages.count.open;
  const wrong =
    priority > 5
      ? [`${priority} is no priority`, 'Choose one from 1, the most urgent, to 5.']
      : window > most
        ? [`a window of ${window} is too large`, `Choose at most ${most}: workflows keep track of each.`]
        : slice > longest
          ? [`${slice} trials are too many for one workflow`, `Choose at most ${longest}.`]
          : undefined;
  if (wrong)
    throw new OffsiteError(wrong[0] ?? '', { code: 'OPTION_INVALID', kind: 'input', hint: wrong[1] ?? '' });
}
