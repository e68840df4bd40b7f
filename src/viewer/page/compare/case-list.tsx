import { useState } from 'preact/hooks';
import type { Measure } from '../../../comparison/compare-sides.ts';
import type { Change, ComparedCase } from '../../model/compare.ts';
import { wordTest } from '../../model/filter.ts';
import type { TrialRow } from '../../model/shapes.ts';
import { Repeats } from '../batch/batch-grid.tsx';
import { FilterBox } from '../parts/filter-box.tsx';
import { line } from '../parts/foreign.ts';
import { Notice } from '../parts/heading.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { addressOf, go, setQuery } from '../router.ts';
import { rowShortcuts, useShortcuts } from '../shortcuts.ts';
import { delta, shownAs } from './measures.tsx';

const names: Record<Change, string> = {
  regressed: '✗ regressed',
  fixed: '✓ fixed',
  worse: '↓ worse',
  better: '↑ better',
  'only-a': 'only A',
  'only-b': 'only B',
  same: 'same',
  unscored: 'no verdict',
  redefined: '≠ redefined',
};

/** Where the whole is noise, a row does not say more than a change of the pass rate. */
const inNoise: Partial<Record<Change, Change>> = { regressed: 'worse', fixed: 'better' };

interface CaseListProps {
  cases: ComparedCase[];
  /** Whether all cases together show no difference. */
  isNoise: boolean;
  /** The columns of numbers. */
  measures: Measure[];
  query: URLSearchParams;
}

/** The cases of a comparison, flips first. */
export function CaseList({ cases, isNoise, measures, query }: CaseListProps) {
  const [current, setCurrent] = useState<string>();
  const filter = query.get('q') ?? '';
  const matches = wordTest(filter);
  const said = ({ change }: ComparedCase) => (isNoise && inNoise[change]) || change;
  const shown = cases.filter((one) => matches(`${one.caseName} ${names[said(one)]}`));
  const at = shown.findIndex(({ caseId }) => caseId === current);
  const address = ({ caseId }: ComparedCase) =>
    addressOf('/compare', { ...Object.fromEntries(query), case: caseId });
  useShortcuts(
    rowShortcuts({
      what: 'case',
      items: shown,
      at,
      select: ({ caseId }) => setCurrent(caseId),
      open: { does: 'Show both transcripts of the case', run: (one) => go(address(one)) },
      stops: { which: 'that flipped', fits: ({ change }) => change === 'regressed' || change === 'fixed' },
    }),
  );
  const side = (name: 'A' | 'B', trialsOf: (one: ComparedCase) => TrialRow[]): Column<ComparedCase> => ({
    name,
    class: 'cell',
    cell: (one) => (
      <Repeats trials={trialsOf(one)} at={undefined} addressOf={({ key }) => addressOf(`/trial/${key}`)} />
    ),
  });
  return (
    <>
      <FilterBox
        value={filter}
        onChange={(q) => setQuery({ q })}
        label="Filter cases"
        placeholder="Filter by case or change   /"
      />
      {shown.length === 0 ? (
        <Notice>No case matches the filter.</Notice>
      ) : (
        <Table
          class="cases"
          label="Cases"
          rowsLabel="Cases that match"
          items={shown}
          keyOf={({ caseId }) => caseId}
          rowHeight={{ wide: 2.6, narrow: 6.6 }}
          at={at}
          style={{ '--measures': `${measures.length}` }}
          columns={[
            {
              name: 'Change',
              attributes: (one) => ({ class: `change ${said(one)}` }),
              cell: (one) => names[said(one)],
            },
            {
              name: 'Case',
              class: 'name',
              cell: (one) => (
                <>
                  <a class="cover" href={address(one)}>
                    {line(one.caseName)}
                  </a>
                  {one.parts && <span class="dim"> {one.parts.join(', ')}</span>}
                </>
              ),
            },
            side('A', ({ a }) => a),
            side('B', ({ b }) => b),
            ...measures.map((measure): Column<ComparedCase> => {
              const { name, shown } = shownAs[measure];
              return {
                name: `${name}, B - A`,
                isNumber: true,
                attributes: () => ({ 'data-name': name }),
                cell: ({ deltas }) => delta(deltas[measure], shown),
              };
            }),
          ]}
        />
      )}
    </>
  );
}
