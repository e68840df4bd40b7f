import { useMemo } from 'preact/hooks';
import { timelineOf } from '../../../record/timeline.ts';
import type { ComparedCase } from '../../model/compare.ts';
import { entryName } from '../../model/entry.ts';
import { explain } from '../../model/explain.ts';
import type { GridTrial } from '../../model/grid.ts';
import { useLoaded } from '../data/source.tsx';
import { line } from '../parts/foreign.ts';
import { Notice } from '../parts/heading.tsx';
import { cost, count, duration } from '../parts/quantities.ts';
import { standingOf, Verdict } from '../parts/verdict.tsx';
import { addressOf, setQuery } from '../router.ts';
import { useShortcuts } from '../shortcuts.ts';
import { EntryPanel } from '../trial/entry-panel.tsx';
import { RecordContext, type ShownRecord, useRecord } from '../trial/record-context.ts';
import { TimelineList } from '../trial/timeline-list.tsx';

/** A trial of each side of a case, with both transcripts side by side. */
export function Transcripts({ compared, query }: { compared: ComparedCase; query: URLSearchParams }) {
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
  trials: GridTrial[];
  query: URLSearchParams;
}

function Column({ name, side, trials, query }: ColumnProps) {
  const chosen = trials.find(({ key }) => String(key) === query.get(`${side}Trial`)) ?? trials[0];
  return (
    <section class="column" aria-label={`Transcript of ${name}`}>
      {chosen ? (
        <>
          <div class="tools">
            <b class="letter">{name}</b>
            <Verdict standing={standingOf(chosen)} />
            <span class="dim">
              {duration(chosen.durationMs)}
              {chosen.summary?.totalTokens !== 0 &&
                ` · ${count(chosen.summary?.totalTokens)} tokens · ${cost(chosen.summary?.costUsd)}`}
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
  trial: GridTrial;
  side: 'left' | 'right';
  query: URLSearchParams;
}

function Transcript({ trial: { key }, side, query }: TranscriptProps) {
  const { value: page, error } = useLoaded(
    `trial ${key} `,
    (source, signal) => source.trial({ trial: key }, signal),
    (event) => event.trials.includes(key),
  );
  const shown = useMemo<ShownRecord | undefined>(
    () => page?.found && { ...page.found, reference: { trial: key } },
    [page, key],
  );
  if (!page) return <Notice error={error} />;
  if (!shown) return <Notice>{page.unreadable ? line(page.unreadable) : 'It has no result yet.'}</Notice>;
  return (
    <RecordContext.Provider value={shown}>
      <Entries side={side} query={query} />
    </RecordContext.Provider>
  );
}

function Entries({ side, query }: { side: 'left' | 'right'; query: URLSearchParams }) {
  const { record } = useRecord();
  const entries = useMemo(() => timelineOf(record), [record]);
  const selected = entries.findIndex((entry) => entryName(entry) === query.get(`${side}Sel`));
  const [reason] = explain(record).reasons;
  const entry = entries[selected];
  return (
    <>
      {reason !== undefined && <p class="reason">{line(reason)}</p>}
      <TimelineList
        entries={entries}
        record={record}
        selected={selected}
        onSelect={(index) => {
          const next = entries[index];
          if (next) setQuery({ [`${side}Sel`]: entryName(next) });
        }}
      />
      {entry && <EntryPanel key={entryName(entry)} entry={entry} />}
    </>
  );
}
