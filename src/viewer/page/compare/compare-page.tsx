import { useMemo } from 'preact/hooks';
import { timelineOf } from '../../../record/timeline.ts';
import { type ComparedCase, chooseVariants, compareTrials } from '../../model/compare.ts';
import { entryName } from '../../model/entry.ts';
import { explain } from '../../model/explain.ts';
import { variantsOf } from '../../model/grid.ts';
import type { TrialRow } from '../../model/shapes.ts';
import { type LoadedBatch, useBatch } from '../batch/use-batch.ts';
import { useLoaded } from '../data/source.tsx';
import { line } from '../parts/foreign.ts';
import { Heading, Notice, Pending } from '../parts/heading.tsx';
import { cost, count, duration, plural, when } from '../parts/quantities.ts';
import { standingOf, Verdict } from '../parts/verdict.tsx';
import { addressOf, setQuery } from '../router.ts';
import { useShortcuts } from '../shortcuts.ts';
import { EntryPanel } from '../trial/entry-panel.tsx';
import { RecordOf, useRecord } from '../trial/record-context.tsx';
import { TimelineList } from '../trial/timeline-list.tsx';
import { CaseList } from './case-list.tsx';
import { Finding } from './finding.tsx';
import { Measures, shownMeasures } from './measures.tsx';

/** Two batches, or two variants of one: what changed, and whether it is more than noise. */
export function ComparePage({ query }: { query: URLSearchParams }) {
  const [a, b] = [Number(query.get('left')), Number(query.get('right'))];
  const left = useBatch(a);
  const right = useBatch(b);
  const variants = useMemo(
    () =>
      chooseVariants(
        { trials: left.trials, variant: query.get('leftVariant') ?? undefined },
        { trials: right.trials, variant: query.get('rightVariant') ?? undefined },
        a === b,
      ),
    [left.trials, right.trials, query, a, b],
  );
  // Costs seconds with many trials, so it depends on no object that each change of the address makes anew.
  const compared = useMemo(() => {
    const sideOf = ({ value, trials }: LoadedBatch, variant = '') => value && { ...value, trials, variant };
    const sides = [sideOf(left, variants.a), sideOf(right, variants.b)] as const;
    return sides[0] && sides[1] && compareTrials(sides[0], sides[1], variants.confidence);
  }, [left.value, left.trials, right.value, right.trials, variants.a, variants.b, variants.confidence]);
  const chosen = compared?.cases.find(({ caseId }) => caseId === query.get('case'));
  const unread = (left.value?.unread ?? 0) + (right.value?.unread ?? 0);
  if (!compared) return <Pending title="Compare" error={left.error ?? right.error} />;
  return (
    <div class="page fill compare">
      <nav class="crumbs" aria-label="You are here">
        <a href={addressOf('/')}>Batches</a> <span aria-hidden="true">/</span> <span>compare</span>
      </nav>
      <div class="head">
        <Heading title="Compare">Compare</Heading>
        <span class="grow" />
        {chosen && (
          <button type="button" onClick={() => setQuery({ case: undefined })}>
            All cases
          </button>
        )}
        <a class="button" href={swapped(query)}>
          Swap A and B
        </a>
      </div>
      <div class="sides">
        <Side name="A" loaded={left} variant={variants.a} parameter="leftVariant" />
        <Side name="B" loaded={right} variant={variants.b} parameter="rightVariant" />
      </div>
      {chosen ? (
        <Transcripts compared={chosen} query={query} />
      ) : (
        <>
          <div class="findings">
            <Finding compared={compared} inCommon={variants.inCommon} />
            <Measures {...compared} />
          </div>
          {unread > 0 && <p class="dim">reading {plural(unread, 'record')} …</p>}
          <CaseList
            cases={compared.cases}
            isNoise={compared.difference.finding === 'noise'}
            measures={shownMeasures(compared.measures)}
            query={query}
          />
        </>
      )}
    </div>
  );
}

interface SideProps {
  name: string;
  loaded: LoadedBatch;
  variant: string | undefined;
  parameter: 'leftVariant' | 'rightVariant';
}

function Side({ name, loaded: { value, trials }, variant, parameter }: SideProps) {
  const variants = variantsOf(trials);
  if (!value) return null;
  const { key, suite, id, startedAt, marks } = value.batch;
  const { exported } = value;
  return (
    <div class="side">
      <b class="letter">{name}</b>
      <span>
        <a href={addressOf(`/batch/${key}`)}>
          {line(suite)} <span class="id">{line(id)}</span>
        </a>{' '}
        <span class="dim">
          {when(startedAt)}
          {exported && ` on ${line(exported.machine)}`}
        </span>
        {marks.map((mark) => (
          <span key={mark} class="tag">
            {mark}
          </span>
        ))}
      </span>
      <select
        aria-label={`Variant of ${name}`}
        value={variant}
        onChange={(event) => setQuery({ [parameter]: event.currentTarget.value })}
      >
        {variants.map((each) => (
          <option key={each} value={each}>
            {line(each)}
          </option>
        ))}
      </select>
    </div>
  );
}

function swapped(query: URLSearchParams): string {
  const all = Object.fromEntries(query);
  const pairs = ['', 'Variant', 'Trial', 'Sel'].flatMap((part) => [
    [`left${part}`, all[`right${part}`]],
    [`right${part}`, all[`left${part}`]],
  ]);
  return addressOf('/compare', { ...all, ...Object.fromEntries(pairs) });
}

/** A trial of each side of a case, with both transcripts side by side. */
function Transcripts({ compared, query }: { compared: ComparedCase; query: URLSearchParams }) {
  useShortcuts([
    { keys: ['u', 'Escape'], does: 'Back to all cases', run: () => setQuery({ case: undefined }) },
  ]);
  return (
    <>
      <h2>{line(compared.caseName)}</h2>
      <div class="transcripts">
        <Column name="A" side="left" trials={compared.a} query={query} />
        <Column name="B" side="right" trials={compared.b} query={query} />
      </div>
    </>
  );
}

interface ColumnProps {
  name: string;
  side: 'left' | 'right';
  trials: TrialRow[];
  query: URLSearchParams;
}

function Column({ name, side, trials, query }: ColumnProps) {
  const wanted = trials.find(({ key }) => String(key) === query.get(`${side}Trial`));
  const chosen = wanted ?? trials.find(({ verdict }) => verdict === 'failed') ?? trials[0];
  return (
    <section class="column" aria-label={`Transcript of ${name}`}>
      {chosen ? (
        <>
          <div class="tools">
            <b class="letter">{name}</b>
            <Verdict standing={standingOf(chosen)} />
            <span class="dim">
              {duration(chosen.durationMs)}
              {chosen.tokens !== 0 && ` · ${count(chosen.tokens)} tokens · ${cost(chosen.costUsd)}`}
            </span>
            <span class="grow" />
            {trials.length > 1 && (
              <select
                aria-label={`Trial of ${name}`}
                value={chosen.key}
                onChange={(event) =>
                  setQuery({ [`${side}Trial`]: event.currentTarget.value, [`${side}Sel`]: undefined })
                }
              >
                {trials.map((trial) => (
                  <option key={trial.key} value={trial.key}>
                    #{trial.ordinal} {standingOf(trial)}
                  </option>
                ))}
              </select>
            )}
            <a href={addressOf(`/trial/${chosen.key}`)}>Open</a>
          </div>
          <Transcript key={chosen.key} trial={chosen} side={side} query={query} />
        </>
      ) : (
        <Notice>{name} has no trial of this case.</Notice>
      )}
    </section>
  );
}

interface TranscriptProps {
  trial: TrialRow;
  side: 'left' | 'right';
  query: URLSearchParams;
}

function Transcript({ trial: { key }, side, query }: TranscriptProps) {
  const { value: page, error } = useLoaded(
    `trial ${key} `,
    (source, signal) => source.trial({ trial: key }, signal),
    (event) => event.trials.includes(key),
  );
  if (!page) return <Notice error={error} />;
  if (!page.found)
    return <Notice>{page.unreadable ? line(page.unreadable) : 'It has no result yet.'}</Notice>;
  return (
    <RecordOf page={page}>
      <Entries side={side} query={query} />
    </RecordOf>
  );
}

function Entries({ side, query }: { side: 'left' | 'right'; query: URLSearchParams }) {
  const { record } = useRecord();
  const entries = useMemo(() => timelineOf(record), [record]);
  const selected = entries.find((entry) => entryName(entry) === query.get(`${side}Sel`));
  const [reason] = explain(record).reasons;
  return (
    <>
      {reason !== undefined && <p class="reason">{line(reason)}</p>}
      <TimelineList
        {...{ entries, record, selected }}
        onSelect={(entry) => setQuery({ [`${side}Sel`]: entryName(entry) })}
      />
      {selected && <EntryPanel key={entryName(selected)} entry={selected} />}
    </>
  );
}
