import type { AuditStanding } from '../../../record/audit.ts';
import { type GridTrial, gridOf, passRate, tallyOf } from '../../model/grid.ts';
import { line } from '../parts/foreign.ts';
import { percent } from '../parts/quantities.ts';
import { narrow, useMedia } from '../parts/use-media.ts';
import { standingText } from '../parts/verdict.tsx';
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
  // A cell with a void trial has two lines with its reason.
  const hasReasons = trials.some(({ verdict, cause }) => verdict === 'void' && cause);
  // One with an audited trial has a line with the level that was reached.
  const hasLevels = trials.some(({ audit }) => audit);
  const isNarrow = useMedia(narrow);
  const rowHeight =
    (isNarrow ? 3 : 0.9) +
    1.75 * Math.ceil(most / repeatsInLine) +
    (hasReasons ? 2.3 : 0) +
    (hasLevels ? 1.3 : 0);
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
      {cell.some(({ audit }) => audit) && <Levels cell={cell} />}
      {cause && (
        <span class="dim reason" title={line(cause.message)}>
          {cause.kind}: {line(cause.message)}
        </span>
      )}
    </span>
  );
}

/** How far the trials of a cell were audited: one word if it is the same for all of them. */
function Levels({ cell }: Pick<CellProps, 'cell'>) {
  const groups = [...Map.groupBy(cell, ({ audit }) => audit?.standing)];
  const text = (standing: AuditStanding | undefined, trials: GridTrial[]) => {
    const name = standing === undefined ? 'not audited' : standingText(standing);
    return groups.length === 1 ? name : `${trials.map(({ ordinal }) => `#${ordinal}`).join(' ')} ${name}`;
  };
  const all = groups.map(([standing, trials]) => text(standing, trials)).join(', ');
  return (
    <span class="reason levels" title={`audited: ${all}`}>
      {groups.map(([standing, trials], index) => (
        <span key={standing ?? ''} class={`audit ${standing ?? ''}`}>
          {index > 0 && ', '}
          {text(standing, trials)}
        </span>
      ))}
    </span>
  );
}
