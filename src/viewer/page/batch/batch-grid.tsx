import { type GridTrial, gridOf, passRate, tallyOf } from '../../model/grid.ts';
import { line } from '../parts/foreign.ts';
import { percent } from '../parts/quantities.ts';
import { VirtualList } from '../parts/virtual-list.tsx';
import { Repeats } from './repeats.tsx';

interface BatchGridProps {
  trials: GridTrial[];
  variants: string[];
  at: number | undefined;
  addressOf: (trial: GridTrial) => string;
}

/** Repeats in a line of a cell; a cell with more is higher. */
const repeatsInLine = 8;

/** Cases times variants, with the repeats of each in one cell. */
export function BatchGrid({ trials, variants, at, addressOf }: BatchGridProps) {
  const { rows } = gridOf(trials, variants);
  const most = Math.max(1, ...rows.flatMap(({ cells }) => cells.map((cell) => cell.length)));
  const inLine = Math.min(most, repeatsInLine);
  // A cell with a void trial has a line with its reason.
  const hasReasons = trials.some(({ verdict, cause }) => verdict === 'void' && cause);
  const rowHeight = 0.9 + 1.75 * Math.ceil(most / repeatsInLine) + (hasReasons ? 1.3 : 0);
  const columns = {
    '--variants': `${variants.length}`,
    '--cell': `${inLine * 1.75 + 3.8}rem`,
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
        row={(index, attributes) => {
          const row = rows[index];
          return (
            row && (
              <div key={row.caseId} class="row" role="row" aria-rowindex={index + 2} {...attributes}>
                <span role="rowheader" class="name" title={`${line(row.caseName)} (${line(row.caseId)})`}>
                  <span>
                    {line(row.caseName)}
                    {row.caseId !== row.caseName && <span class="dim"> {line(row.caseId)}</span>}
                  </span>
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
  cell: GridTrial[];
}

function Cell({ cell, at, addressOf }: CellProps) {
  const rate = passRate(tallyOf(cell));
  const cause = cell.find(({ verdict }) => verdict === 'void')?.cause;
  return (
    <span role="cell" class="cell">
      <Repeats trials={cell} at={at} addressOf={addressOf} />
      {cell.length > 1 && rate !== undefined && <span class="dim rate">{percent(rate)}</span>}
      {cause && (
        <span class="dim reason" title={line(cause.message)}>
          {cause.kind}: {line(cause.message)}
        </span>
      )}
    </span>
  );
}
