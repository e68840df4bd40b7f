import { useState } from 'preact/hooks';
import type { Change, ComparedCase, Measure } from '../../model/compare.ts';
import { Repeats } from '../batch/repeats.tsx';
import { FilterBox } from '../parts/filter-box.tsx';
import { line } from '../parts/foreign.ts';
import { Notice } from '../parts/heading.tsx';
import { narrow, useMedia } from '../parts/use-media.ts';
import { type RowAttributes, VirtualList } from '../parts/virtual-list.tsx';
import { addressOf, go, setQuery } from '../router.ts';
import { useShortcuts } from '../shortcuts.ts';
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
  const isNarrow = useMedia(narrow);
  const [at, setAt] = useState<number>();
  const filter = query.get('q') ?? '';
  const words = filter.toLowerCase().split(/\s+/);
  const said = ({ change }: ComparedCase) => (isNoise && inNoise[change]) || change;
  const shown = cases.filter((one) => {
    const text = `${one.caseName} ${names[said(one)]}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const address = (one: ComparedCase) =>
    addressOf('/compare', { ...Object.fromEntries(query), case: one.caseId });
  const current = at === undefined ? undefined : shown[at];
  const move = (by: number) =>
    setAt((last) => Math.max(0, Math.min(last === undefined ? 0 : last + by, shown.length - 1)));
  const nextFlip = (by: 1 | -1) => {
    const isFlip = ({ change }: ComparedCase) => change === 'regressed' || change === 'fixed';
    for (let index = (at ?? -1) + by; index >= 0 && index < shown.length; index += by) {
      const one = shown[index];
      if (one && isFlip(one)) return setAt(index);
    }
  };
  useShortcuts([
    { keys: ['j', 'ArrowDown'], does: 'Next case', run: () => move(1) },
    { keys: ['k', 'ArrowUp'], does: 'Previous case', run: () => move(-1) },
    { keys: ['n', ']'], does: 'Next case that flipped', run: () => nextFlip(1) },
    { keys: ['p', '['], does: 'Previous case that flipped', run: () => nextFlip(-1) },
    {
      keys: ['Enter', 'o'],
      does: 'Show both transcripts of the case',
      run: () => current && go(address(current)),
    },
  ]);
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
        <div
          class="table cases"
          role="table"
          aria-label="Cases"
          aria-rowcount={shown.length + 1}
          style={{ '--measures': `${measures.length}` }}
        >
          <VirtualList
            label="Cases that match"
            count={shown.length}
            rowHeight={isNarrow ? 6.6 : 2.6}
            shown={at}
            header={
              <div class="row header" role="row" aria-rowindex={1}>
                {['Change', 'Case', 'A', 'B'].map((name) => (
                  <span key={name} role="columnheader">
                    {name}
                  </span>
                ))}
                {measures.map((measure) => (
                  <span key={measure} role="columnheader" class="number">
                    {shownAs[measure].name}, B - A
                  </span>
                ))}
              </div>
            }
            row={(index, attributes) => {
              const one = shown[index];
              return (
                one && (
                  <Row
                    key={one.caseId}
                    {...{ one, measures, index, attributes }}
                    address={address(one)}
                    change={said(one)}
                    isCurrent={index === at}
                  />
                )
              );
            }}
          />
        </div>
      )}
    </>
  );
}

interface RowProps {
  one: ComparedCase;
  /** As the row says it. */
  change: Change;
  measures: Measure[];
  index: number;
  attributes: RowAttributes;
  address: string;
  isCurrent: boolean;
}

function Row({ one, change, measures, index, attributes, address, isCurrent }: RowProps) {
  return (
    <div
      class={`row ${isCurrent ? 'current' : ''}`}
      role="row"
      aria-rowindex={index + 2}
      aria-current={isCurrent ? 'true' : undefined}
      {...attributes}
    >
      <span role="cell" class={`change ${change}`}>
        {names[change]}
      </span>
      <span role="cell" class="name">
        <a class="cover" href={address}>
          {line(one.caseName)}
        </a>
        {one.parts && <span class="dim"> {one.parts.join(', ')}</span>}
      </span>
      {[one.a, one.b].map((trials, side) => (
        <span key={side === 0 ? 'a' : 'b'} role="cell" class="cell">
          <Repeats trials={trials} at={undefined} addressOf={({ key }) => addressOf(`/trial/${key}`)} />
        </span>
      ))}
      {measures.map((measure) => (
        <span key={measure} role="cell" class="number" data-name={shownAs[measure].name}>
          {delta(one.deltas[measure], shownAs[measure].shown)}
        </span>
      ))}
    </div>
  );
}
