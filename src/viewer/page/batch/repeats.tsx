import type { GridTrial } from '../../model/grid.ts';
import { line } from '../parts/foreign.ts';
import { signOf, standingOf } from '../parts/verdict.tsx';

interface RepeatsProps {
  trials: GridTrial[];
  /** The key of the current trial. */
  at: number | undefined;
  addressOf: (trial: GridTrial) => string;
}

/** The trials of a cell, each as a link with the sign of its verdict. */
export function Repeats({ trials, at, addressOf }: RepeatsProps) {
  return (
    <span class="repeats">
      {trials.map((trial) => {
        const standing = standingOf(trial);
        const label = labelOf(trial);
        const isCurrent = trial.key === at;
        return (
          <a
            key={trial.key}
            class={`repeat ${standing} ${isCurrent ? 'current' : ''}`}
            href={addressOf(trial)}
            aria-label={label}
            aria-current={isCurrent ? 'true' : undefined}
            title={label}
          >
            {signOf(standing)}
          </a>
        );
      })}
    </span>
  );
}

/** What a trial's sign stands for, with the reason. */
function labelOf(trial: GridTrial): string {
  const { caseName, variant, ordinal, cause, summary, audit } = trial;
  const reason = summary?.reason ?? cause?.message;
  const audited = audit ? `, ${audit.standing} by an audit` : '';
  const name = `${line(caseName)} · ${line(variant)} #${ordinal}: ${standingOf(trial)}${audited}`;
  const by = cause ? ` (${cause.kind})` : '';
  return reason === undefined ? `${name}${by}` : `${name}${by}: ${line(reason)}`;
}
