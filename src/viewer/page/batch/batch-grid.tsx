import type { AuditStanding } from '../../../record/audit.ts';
import { type GridRow, gridOf, passRate, tallyOf } from '../../model/grid.ts';
import type { TrialRow } from '../../model/shapes.ts';
import { line } from '../parts/foreign.ts';
import { percent } from '../parts/quantities.ts';
import { type Column, Table } from '../parts/table.tsx';
import { signOf, standingOf, standingText } from '../parts/verdict.tsx';

interface BatchGridProps {
  trials: TrialRow[];
  variants: string[];
  at: number | undefined;
  addressOf: (trial: TrialRow) => string;
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
  const height = 1.75 * Math.ceil(most / repeatsInLine) + (hasReasons ? 2.3 : 0) + (hasLevels ? 1.3 : 0);
  return (
    <Table
      class="grid"
      label="Cases and variants"
      rowsLabel="Cases"
      items={rows}
      keyOf={({ caseId }) => caseId}
      rowHeight={{ wide: 0.9 + height, narrow: 3 + height }}
      at={rows.findIndex(({ cells }) => cells.flat().some(({ key }) => key === at))}
      isMarked={false}
      style={{ '--variants': `${variants.length}`, '--cell': `${inLine * 1.75 + 3.8}rem` }}
      columns={[
        {
          name: 'Case',
          class: 'name',
          isHeader: true,
          attributes: ({ caseName, caseId }) => ({ title: `${line(caseName)} (${line(caseId)})` }),
          cell: ({ caseName, caseId }) => (
            <span>
              {line(caseName)}
              {caseId !== caseName && <span class="dim"> {line(caseId)}</span>}
            </span>
          ),
        },
        ...variants.map((variant, column): Column<GridRow> => {
          const name = line(variant);
          const cell = ({ cells }: GridRow) => <Cell cell={cells[column] ?? []} {...{ at, addressOf }} />;
          return { name, title: name, class: 'cell', cell };
        }),
      ]}
    />
  );
}

interface CellProps extends Pick<BatchGridProps, 'at' | 'addressOf'> {
  cell: TrialRow[];
}

function Cell({ cell, at, addressOf }: CellProps) {
  const rate = passRate(tallyOf(cell));
  const cause = cell.find(({ verdict }) => verdict === 'void')?.cause;
  return (
    <>
      <Repeats trials={cell} at={at} addressOf={addressOf} />
      {cell.length > 1 && rate !== undefined && <span class="dim rate">{percent(rate)}</span>}
      {cell.some(({ audit }) => audit) && <Levels cell={cell} />}
      {cause && (
        <span class="dim reason" title={line(cause.message)}>
          {cause.kind}: {line(cause.message)}
        </span>
      )}
    </>
  );
}

/** How far the trials of a cell were audited: one word if it is the same for all of them. */
function Levels({ cell }: Pick<CellProps, 'cell'>) {
  const groups = [...Map.groupBy(cell, ({ audit }) => audit?.standing)];
  const text = (standing: AuditStanding | undefined, trials: TrialRow[]) => {
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

interface RepeatsProps {
  trials: TrialRow[];
  /** The key of the current trial. */
  at: number | undefined;
  addressOf: (trial: TrialRow) => string;
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
function labelOf(trial: TrialRow): string {
  const { caseName, variant, ordinal, cause, audit } = trial;
  const reason = trial.reason ?? cause?.message;
  const audited = audit ? `, ${audit.standing} by an audit` : '';
  const name = `${line(caseName)} · ${line(variant)} #${ordinal}: ${standingOf(trial)}${audited}`;
  const by = cause ? ` (${cause.kind})` : '';
  return reason === undefined ? `${name}${by}` : `${name}${by}: ${line(reason)}`;
}
