import { useState } from 'preact/hooks';
import { commitText } from '../../../record/suite-commit.ts';
import { passRate, passRates } from '../../model/grid.ts';
import { type BatchInList, isPlatforms, partText } from '../../model/shapes.ts';
import { useLoaded } from '../data/source.tsx';
import { FilterBox } from '../parts/filter-box.tsx';
import { line } from '../parts/foreign.ts';
import { Heading, Notice } from '../parts/heading.tsx';
import { cost, count, percent, plural, took, when } from '../parts/quantities.ts';
import { narrow, useMedia } from '../parts/use-media.ts';
import { TallySigns } from '../parts/verdict.tsx';
import { type RowAttributes, VirtualList } from '../parts/virtual-list.tsx';
import { addressOf, go, setQuery } from '../router.ts';
import { useShortcuts } from '../shortcuts.ts';
import { RateChart } from './rate-chart.tsx';

/** All batches, with the pass rate of each suite over time. */
export function BatchesPage({ query }: { query: URLSearchParams }) {
  const { value: batches, error } = useLoaded(
    'batches',
    (source, signal) => source.batches(signal),
    (event) => event.batches.length > 0,
  );
  if (!batches) return <Empty error={error} />;
  if (batches.length === 0)
    return (
      <Empty>
        This data folder has no batch yet. <code>offsite run suite.yaml</code> starts one.
      </Empty>
    );
  return <Batches batches={batches} query={query} />;
}

function Empty({ error, children }: { error?: Error | undefined; children?: preact.ComponentChildren }) {
  return (
    <>
      <Heading title="Batches">Batches</Heading>
      <Notice error={error}>{children}</Notice>
    </>
  );
}

function Batches({ batches, query }: { batches: BatchInList[]; query: URLSearchParams }) {
  const isNarrow = useMedia(narrow);
  const [at, setAt] = useState<number>();
  const filter = query.get('q') ?? '';
  const suite = query.get('suite') ?? undefined;
  const marked = (query.get('marked') ?? '').split(',').filter((key) => key !== '');
  const suites = passRates(batches);
  const words = filter.toLowerCase().split(/\s+/);
  const shown = batches.filter(
    (batch) =>
      (suite === undefined || batch.suite === suite) && words.every((word) => searched(batch).includes(word)),
  );
  const current = at === undefined ? undefined : shown[Math.min(at, shown.length - 1)];
  const mark = (key: number) => {
    const others = marked.filter((each) => each !== String(key));
    const all = others.length < marked.length ? others : [...others.slice(-1), String(key)];
    setQuery({ marked: all.join(',') });
  };
  const comparison = comparisonOf(marked);
  const move = (by: number) => setAt((last) => clamp(last === undefined ? 0 : last + by, shown.length));

  useShortcuts([
    { keys: ['j', 'ArrowDown'], does: 'Next batch', run: () => move(1) },
    { keys: ['k', 'ArrowUp'], does: 'Previous batch', run: () => move(-1) },
    { keys: ['Enter'], does: 'Open the batch', run: () => current && go(addressOf(`/batch/${current.key}`)) },
    { keys: ['x'], does: 'Mark the batch, to compare it', run: () => current && mark(current.key) },
    { keys: ['c'], does: 'Compare the two marked batches', run: () => comparison && go(comparison) },
  ]);

  return (
    <div class="page fill">
      <div class="head">
        <Heading title="Batches">Batches</Heading>
        <span class="dim">{plural(batches.length, 'batch', 'batches')}</span>
        <span class="grow" />
        {comparison ? (
          <a class="button" href={comparison}>
            Compare the two marked
          </a>
        ) : (
          <span class="dim hint">Mark two batches to compare them</span>
        )}
      </div>
      <RateChart suites={suites} chosen={suite} newest={shown[0]?.suite} />
      <FilterBox
        value={filter}
        onChange={(q) => setQuery({ q })}
        label="Filter batches by suite, variant, id, set or service"
        placeholder="Filter by suite, variant, id, set or service   /"
      />
      <div class="table batches" role="table" aria-label="Batches" aria-rowcount={shown.length + 1}>
        <VirtualList
          header={
            <div class="row header" role="row" aria-rowindex={1}>
              <span role="columnheader">
                <span class="unseen">Marked</span>
              </span>
              <span role="columnheader">Suite</span>
              <span role="columnheader">Batch</span>
              <span role="columnheader">Verdicts</span>
              {['Pass rate', 'Tokens', 'Cost', 'Took', 'Started'].map((name) => (
                <span key={name} role="columnheader" class="number">
                  {name}
                </span>
              ))}
              <span role="columnheader">
                <span class="unseen">Note</span>
              </span>
            </div>
          }
          label="All batches that match"
          count={shown.length}
          rowHeight={isNarrow ? 8.6 : 2.8}
          shown={at}
          row={(index, attributes) => {
            const batch = shown[index];
            return (
              batch && (
                <Row
                  key={batch.key}
                  {...{ batch, index, attributes, mark }}
                  isMarked={marked.includes(String(batch.key))}
                  isCurrent={batch === current}
                />
              )
            );
          }}
        />
      </div>
      {shown.length === 0 && <Notice>No batch matches the filter.</Notice>}
    </div>
  );
}

interface RowProps {
  batch: BatchInList;
  index: number;
  attributes: RowAttributes;
  isMarked: boolean;
  isCurrent: boolean;
  mark: (key: number) => void;
}

function Row({ batch, index, attributes, isMarked, isCurrent, mark }: RowProps) {
  const { key, id, shortId, suite, service, startedAt, commit, set, variants, elapsed } = batch;
  const { tokens, costUsd } = batch;
  const notes = [
    ...batch.marks,
    ...(isPlatforms(service) ? ['run by the platform'] : []),
    ...(set ? [partText(set)] : []),
  ].join(' · ');
  const names = variants.map(line).join(', ');
  return (
    <div
      class={`row ${isCurrent ? 'current' : ''}`}
      role="row"
      aria-rowindex={index + 2}
      aria-current={isCurrent ? 'true' : undefined}
      {...attributes}
    >
      <span role="cell">
        <input
          type="checkbox"
          checked={isMarked}
          aria-label={`Mark ${line(id)} to compare it`}
          onChange={() => mark(key)}
        />
      </span>
      <span role="cell" class="name" title={`${line(suite)}: ${names}`}>
        <a class="cover" href={addressOf(`/batch/${key}`)}>
          {line(suite)}
        </a>{' '}
        <span class="dim">{names}</span>
      </span>
      <span role="cell" class="id" title={line(id)}>
        <span>{line(shortId)}</span>{' '}
        {commit && (
          <span class="dim" title={`of commit ${line(commit.id)}`}>
            at {line(commitText(commit))}
          </span>
        )}
      </span>
      <span role="cell" class="verdicts">
        <TallySigns tally={batch} />
      </span>
      <span role="cell" class="number rate">
        {percent(passRate(batch))}
      </span>
      <span role="cell" class="number dim tokens">
        {tokens !== 0 && count(tokens)}
      </span>
      <span role="cell" class="number dim cost">
        {tokens !== 0 && cost(costUsd)}
      </span>
      <span role="cell" class="number dim took">
        {elapsed && took(elapsed.ms, elapsed.isAbout)}
      </span>
      <span role="cell" class="number dim time">
        {when(startedAt)}
      </span>
      <span role="cell" class="dim note" title={notes}>
        {notes}
      </span>
    </div>
  );
}

/** What the filter looks in. */
function searched({ suite, id, service, commit, set, variants }: BatchInList): string {
  return `${suite} ${id} ${service} ${commit?.id ?? ''} ${set?.id ?? ''} ${variants.join(' ')}`.toLowerCase();
}

/** The address of the comparison of two marked batches, the older one on the left. */
function comparisonOf(marked: readonly string[]): string | undefined {
  const [left, right] = [...marked].sort((one, other) => Number(one) - Number(other));
  return left && right ? addressOf('/compare', { left, right }) : undefined;
}

function clamp(index: number, length: number): number {
  return Math.max(0, Math.min(index, length - 1));
}
