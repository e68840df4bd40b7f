import { useState } from 'preact/hooks';
import { commitText } from '../../../record/suite-commit.ts';
import { wordTest } from '../../model/filter.ts';
import { passRate, passRates } from '../../model/grid.ts';
import { type BatchInList, isPlatforms, partText } from '../../model/shapes.ts';
import { useLoaded } from '../data/source.tsx';
import { FilterBox } from '../parts/filter-box.tsx';
import { line } from '../parts/foreign.ts';
import { Heading, Notice } from '../parts/heading.tsx';
import { cost, count, percent, plural, took, when } from '../parts/quantities.ts';
import { type Column, Table } from '../parts/table.tsx';
import { TallySigns } from '../parts/verdict.tsx';
import { addressOf, go, setQuery } from '../router.ts';
import { rowShortcuts, useShortcuts } from '../shortcuts.ts';
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
  const [current, setCurrent] = useState<number>();
  const filter = query.get('q') ?? '';
  const suite = query.get('suite') ?? undefined;
  const marked = (query.get('marked') ?? '').split(',').filter((key) => key !== '');
  const suites = passRates(batches);
  const matches = wordTest(filter);
  const shown = batches.filter(
    (batch) => (suite === undefined || batch.suite === suite) && matches(searched(batch)),
  );
  const at = shown.findIndex(({ key }) => key === current);
  const mark = ({ key }: BatchInList) => {
    const others = marked.filter((each) => each !== String(key));
    const all = others.length < marked.length ? others : [...others.slice(-1), String(key)];
    setQuery({ marked: all.join(',') });
  };
  const comparison = comparisonOf(marked);

  useShortcuts([
    ...rowShortcuts({
      what: 'batch',
      items: shown,
      at,
      select: ({ key }) => setCurrent(key),
      open: { does: 'Open the batch', run: ({ key }) => go(addressOf(`/batch/${key}`)) },
    }),
    { keys: ['x'], does: 'Mark the batch, to compare it', run: () => shown[at] && mark(shown[at]) },
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
      <Table
        class="batches"
        label="Batches"
        rowsLabel="All batches that match"
        items={shown}
        keyOf={({ key }) => key}
        rowHeight={{ wide: 2.8, narrow: 8.6 }}
        at={at}
        columns={[
          {
            name: <span class="unseen">Marked</span>,
            cell: (batch) => (
              <input
                type="checkbox"
                checked={marked.includes(String(batch.key))}
                aria-label={`Mark ${line(batch.id)} to compare it`}
                onChange={() => mark(batch)}
              />
            ),
          },
          ...columns,
        ]}
      />
      {shown.length === 0 && <Notice>No batch matches the filter.</Notice>}
    </div>
  );
}

const namesOf = ({ variants }: BatchInList) => variants.map(line).join(', ');

function notesOf({ marks, service, set }: BatchInList): string {
  const platform = isPlatforms(service) ? ['run by the platform'] : [];
  return [...marks, ...platform, ...(set ? [partText(set)] : [])].join(' · ');
}

const columns: Column<BatchInList>[] = [
  {
    name: 'Suite',
    class: 'name',
    attributes: (batch) => ({ title: `${line(batch.suite)}: ${namesOf(batch)}` }),
    cell: (batch) => (
      <>
        <a class="cover" href={addressOf(`/batch/${batch.key}`)}>
          {line(batch.suite)}
        </a>{' '}
        <span class="dim">{namesOf(batch)}</span>
      </>
    ),
  },
  {
    name: 'Batch',
    class: 'id',
    attributes: ({ id }) => ({ title: line(id) }),
    cell: ({ shortId, commit }) => (
      <>
        <span>{line(shortId)}</span>{' '}
        {commit && (
          <span class="dim" title={`of commit ${line(commit.id)}`}>
            at {line(commitText(commit))}
          </span>
        )}
      </>
    ),
  },
  { name: 'Verdicts', class: 'verdicts', cell: (batch) => <TallySigns tally={batch} /> },
  { name: 'Pass rate', isNumber: true, class: 'rate', cell: (batch) => percent(passRate(batch)) },
  {
    name: 'Tokens',
    isNumber: true,
    class: 'dim tokens',
    cell: ({ tokens }) => tokens !== 0 && count(tokens),
  },
  {
    name: 'Cost',
    isNumber: true,
    class: 'dim cost',
    cell: ({ tokens, costUsd }) => tokens !== 0 && cost(costUsd),
  },
  {
    name: 'Took',
    isNumber: true,
    class: 'dim took',
    cell: ({ elapsed }) => elapsed && took(elapsed.ms, elapsed.isAbout),
  },
  { name: 'Started', isNumber: true, class: 'dim time', cell: ({ startedAt }) => when(startedAt) },
  {
    name: <span class="unseen">Note</span>,
    class: 'dim note',
    attributes: (batch) => ({ title: notesOf(batch) }),
    cell: notesOf,
  },
];

/** What the filter looks in. */
function searched({ suite, id, service, commit, set, variants }: BatchInList): string {
  return `${suite} ${id} ${service} ${commit?.id ?? ''} ${set?.id ?? ''} ${variants.join(' ')}`.toLowerCase();
}

/** The address of the comparison of two marked batches, the older one on the left. */
function comparisonOf(marked: readonly string[]): string | undefined {
  const [left, right] = [...marked].sort((one, other) => Number(one) - Number(other));
  return left && right ? addressOf('/compare', { left, right }) : undefined;
}
