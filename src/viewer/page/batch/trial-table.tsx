import type { ListedTrial } from '../../model/grid.ts';
import { line } from '../parts/foreign.ts';
import { cost, count, duration } from '../parts/quantities.ts';
import { narrow, useMedia } from '../parts/use-media.ts';
import { standingOf, Verdict } from '../parts/verdict.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';

interface TrialTableProps {
  trials: ListedTrial[];
  at: number | undefined;
  addressOf: (trial: ListedTrial) => string;
}

/** Trials with the reason of each. */
export function TrialTable({ trials, at, addressOf }: TrialTableProps) {
  const isNarrow = useMedia(narrow);
  return (
    <div class="table trials" role="table" aria-label="Trials" aria-rowcount={trials.length + 1}>
      <VirtualList
        header={
          <div class="row header" role="row" aria-rowindex={1}>
            {['Verdict', 'Trial', 'Reason'].map((name) => (
              <span key={name} role="columnheader">
                {name}
              </span>
            ))}
            {['Time', 'Tokens', 'Cost'].map((name) => (
              <span key={name} role="columnheader" class="number">
                {name}
              </span>
            ))}
          </div>
        }
        label="Trials that match"
        count={trials.length}
        rowHeight={isNarrow ? 4.4 : 2.2}
        shown={at === undefined ? undefined : trials.findIndex(({ key }) => key === at)}
        row={(index, attributes) => {
          const trial = trials[index];
          if (!trial) return null;
          const { key, caseName, variant, ordinal, cause, durationMs, summary, attempts } = trial;
          const reason = line(summary?.reason ?? cause?.message ?? '');
          return (
            <div
              key={key}
              class={`row ${key === at ? 'current' : ''}`}
              role="row"
              aria-rowindex={index + 2}
              aria-current={key === at ? 'true' : undefined}
              {...attributes}
            >
              <span role="cell">
                <Verdict standing={standingOf(trial)} />
              </span>
              <span role="cell" class="name">
                <a class="cover" href={addressOf(trial)}>
                  {line(caseName)}{' '}
                  <span class="dim">
                    · {line(variant)} #{ordinal}
                  </span>
                </a>
              </span>
              <span role="cell" class="reason" title={reason}>
                {cause && <span class="tag">{cause.kind}</span>}
                {attempts > 1 && <span class="tag">{attempts} attempts</span>}
                {reason}
              </span>
              <span role="cell" class="number">
                {duration(durationMs)}
              </span>
              <span role="cell" class="number">
                {count(summary?.totalTokens)}
              </span>
              <span role="cell" class="number">
                {cost(summary?.costUsd)}
              </span>
            </div>
          );
        }}
      />
    </div>
  );
}
