import { gridOf, type ListedTrial, passRate, tallyOf } from '../../model/grid.ts';
import { line } from '../parts/foreign.ts';
import { percent } from '../parts/quantities.ts';
import { signOf, standingOf } from '../parts/verdict.tsx';
import { VirtualList } from '../parts/virtual-list.tsx';

interface BatchGridProps {
  trials: ListedTrial[];
  variants: string[];
  at: number | undefined;
  addressOf: (trial: ListedTrial) => string;
}

/** Repeats in a line of a cell; a cell with more is higher. */
const repeatsInLine = 8;

/** Cases times variants, with the repeats of each in one cell. */
export function BatchGrid({ trials, variants, at, addressOf }: BatchGridProps) {
  const { rows } = gridOf(trials, variants);
  const most = Math.max(1, ...rows.flatMap(({ cells }) => cells.map((cell) => cell.length)));
  const inLine = Math.min(most, repeatsInLine);
  const rowHeight = 0.9 + 1.75 * Math.ceil(most / repeatsInLine);
  const columns = {
    '--variants': `${variants.length}`,
    '--cell': `${inLine * 1.75 + 3.4}rem`,
  };
  const shown =
    at === undefined ? undefined : rows.findIndex(({ cells }) => cells.flat().some(({ key }) => key === at));
  return (
    <div
      class="table grid"
      role="table"
      aria-label="Cases and variants"
      aria-rowcount={rows.length + 1}
      style={columns}
    >
      <VirtualList
        header={
          <div class="row header" role="row" aria-rowindex={1}>
            <span role="columnheader">Case</span>
            {variants.map((variant) => (
              <span key={variant} role="columnheader" title={line(variant)}>
                {line(variant)}
              </span>
            ))}
          </div>
        }
        label="Cases"
        count={rows.length}
        rowHeight={rowHeight}
        shown={shown}
        row={(index, place) => {
          const row = rows[index];
          return (
            row && (
              <div key={row.caseId} class="row" role="row" aria-rowindex={index + 2} {...place}>
                <span role="rowheader" class="name" title={line(row.caseName)}>
                  {line(row.caseName)}
                </span>
                {row.cells.map((cell, column) => (
                  <Cell key={variants[column]} cell={cell} at={at} addressOf={addressOf} />
                ))}
              </div>
            )
          );
        }}
      />
    </div>
  );
}

interface CellProps extends Pick<BatchGridProps, 'at' | 'addressOf'> {
  cell: ListedTrial[];
}

function Cell({ cell, at, addressOf }: CellProps) {
  const tally = tallyOf(cell);
  return (
    <span role="cell" class="cell">
      <span class="repeats">
        {cell.map((trial) => {
          const standing = standingOf(trial);
          const label = labelOf(trial);
          return (
            <a
              key={trial.key}
              class={`repeat ${standing} ${trial.key === at ? 'current' : ''}`}
              href={addressOf(trial)}
              aria-label={label}
              aria-current={trial.key === at ? 'true' : undefined}
              title={label}
            >
              {signOf(standing)}
            </a>
          );
        })}
      </span>
      {cell.length > 1 && <span class="dim rate">{percent(passRate(tally))}</span>}
    </span>
  );
}

/** What a trial's sign stands for, with the reason. */
export function labelOf(trial: ListedTrial): string {
  const { caseName, variant, ordinal, cause, summary } = trial;
  const reason = summary?.reason ?? cause?.message;
  const name = `${line(caseName)} · ${line(variant)} #${ordinal + 1}: ${standingOf(trial)}`;
  const by = cause ? ` (${cause.kind})` : '';
  return reason === undefined ? `${name}${by}` : `${name}${by}: ${line(reason)}`;
}
