import { useMemo } from 'preact/hooks';
import {
  hasFailed,
  phaseTitle,
  type TimelineEntry,
  type TimelineKind,
  timelineOf,
} from '../../../record/timeline.ts';
import type { TrialRecord } from '../../../record/trial-record.ts';
import { entryName } from '../../model/entry.ts';
import { wordTest } from '../../model/filter.ts';
import { FilterBox } from '../parts/filter-box.tsx';
import { line } from '../parts/foreign.ts';
import { duration } from '../parts/quantities.ts';
import { setQuery } from '../router.ts';
import { nextOf, useShortcuts } from '../shortcuts.ts';
import { EntryPanel } from './entry-panel.tsx';
import { useRecord } from './record-context.tsx';
import { TimelineList } from './timeline-list.tsx';

/** Kinds that are shown and hidden together. */
const groups: Record<string, readonly TimelineKind[]> = {
  commands: ['command'],
  messages: ['user', 'message', 'note'],
  tools: ['tool'],
  models: ['exchange'],
  hosts: ['connection'],
  checks: ['verify', 'validation'],
};

/** All that happened in the trial, on one axis of time, with the details of the selected entry. */
export function Timeline({ query }: { query: URLSearchParams }) {
  const { record } = useRecord();
  const all = useMemo(() => timelineOf(record), [record]);
  const filter = query.get('find') ?? '';
  const hidden = useMemo(() => (query.get('hide') ?? '').split(',').filter((name) => name !== ''), [query]);
  const shown = useMemo(() => filtered(all, filter, hidden), [all, filter, hidden]);
  const present = Object.keys(groups).filter((name) => all.some(({ kind }) => groups[name]?.includes(kind)));
  const selectedName = query.get('sel');
  const found = shown.find((entry) => entryName(entry) === selectedName);
  const selected = selectedName === null ? firstToShow(shown) : found;
  const at = selected ? shown.indexOf(selected) : -1;
  const select = (entry: TimelineEntry | undefined) => entry && setQuery({ sel: entryName(entry) });
  const next = (direction: 1 | -1, fits?: (entry: TimelineEntry) => boolean) => () =>
    select(nextOf(shown, at, direction, fits));
  useShortcuts([
    { keys: ['ArrowDown'], does: 'Next entry of the timeline', run: next(1) },
    { keys: ['ArrowUp'], does: 'Previous entry', run: next(-1) },
    { keys: ['e'], does: 'Next entry that failed', run: next(1, ({ failed }) => failed) },
    { keys: ['E'], does: 'Previous entry that failed', run: next(-1, ({ failed }) => failed) },
    { keys: ['Home'], does: 'First entry', run: () => select(shown[0]) },
    { keys: ['End'], does: 'Last entry', run: () => select(shown.at(-1)) },
  ]);

  if (all.length === 0) return <p class="notice">It ended before anything happened.</p>;
  return (
    <div class="timeline">
      <div class="tools">
        <FilterBox
          value={filter}
          onChange={(find) => setQuery({ find })}
          label="Filter the timeline"
          placeholder="Filter the timeline   /"
        />
        <fieldset class="chips toggles">
          <legend class="unseen">Kinds of entries</legend>
          {present.map((name) => (
            <button
              key={name}
              type="button"
              class="chip"
              aria-pressed={!hidden.includes(name)}
              onClick={() => setQuery({ hide: toggled(hidden, name).join(',') })}
            >
              {name}
            </button>
          ))}
        </fieldset>
      </div>
      <OverviewStrip record={record} entries={shown} selected={selected} onSelect={select} />
      <div class="split">
        <TimelineList entries={shown} record={record} selected={selected} onSelect={select} />
        {selected ? (
          <EntryPanel key={entryName(selected)} entry={selected} />
        ) : (
          <p class="notice">{shown.length === 0 ? 'Nothing matches the filter.' : 'Select an entry.'}</p>
        )}
      </div>
    </div>
  );
}

function filtered(entries: TimelineEntry[], filter: string, hidden: readonly string[]): TimelineEntry[] {
  const kinds = new Set(hidden.flatMap((name) => groups[name] ?? []));
  const matches = wordTest(filter);
  const shown = entries.filter(({ kind }) => !kinds.has(kind));
  if (filter.trim() === '') return shown;
  return shown.filter(
    ({ kind, title, failed }) => kind !== 'phase' && matches(`${kind} ${title} ${failed ? 'failed' : ''}`),
  );
}

/** The entry to show first: the check that failed, else the phase that failed, else the last message. */
function firstToShow(entries: readonly TimelineEntry[]): TimelineEntry | undefined {
  const failed = entries.filter((entry) => entry.failed);
  return (
    failed.find(({ kind }) => kind === 'verify' || kind === 'validation') ??
    failed.find(({ kind }) => kind === 'phase') ??
    entries.findLast(({ kind }) => kind === 'message') ??
    entries[0]
  );
}

function toggled(names: readonly string[], name: string): string[] {
  return names.includes(name) ? names.filter((each) => each !== name) : [...names, name];
}

interface OverviewStripProps {
  record: TrialRecord;
  entries: TimelineEntry[];
  selected: TimelineEntry | undefined;
  onSelect: (entry: TimelineEntry | undefined) => void;
}

/** The line of the strip on which a kind is drawn. */
const lanes: Record<TimelineKind, number> = {
  phase: 0,
  user: 1,
  message: 1,
  note: 1,
  tool: 2,
  command: 2,
  exchange: 3,
  connection: 3,
  verify: 2,
  validation: 2,
};
const laneHeight = 9;
/** Parts of the width that marks are rounded to, and the least that one has. */
const parts = { all: 1_000, least: 3 };

/** The whole trial at a glance: phases as bands, entries as marks. A click goes to the nearest entry. */
function OverviewStrip({ record, entries, selected, onSelect }: OverviewStripProps) {
  const { startedAt, finishedAt, phases } = record;
  const span = Math.max(1, finishedAt - startedAt);
  const x = (at: number) => Math.round(((at - startedAt) / span) * parts.all);
  const marks = useMemo(() => {
    // Thousands of entries share a pixel: one mark of each appearance is enough.
    const drawn = new Map<string, { left: number; width: number; lane: number; failed: boolean }>();
    for (const { kind, at, until = at, failed } of entries) {
      const mark = { left: x(at), width: Math.max(parts.least, x(until) - x(at)), lane: lanes[kind], failed };
      if (kind !== 'phase') drawn.set(JSON.stringify(mark), mark);
    }
    return [...drawn.values()].sort((one, other) => Number(one.failed) - Number(other.failed));
  }, [record, entries]);

  const goTo = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const at = startedAt + ((event.clientX - box.left) / box.width) * span;
    onSelect(entries.find((entry) => entry.kind !== 'phase' && entry.at >= at) ?? entries.at(-1));
  };

  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: keys go through the list below, entry by entry
    // biome-ignore lint/a11y/noStaticElementInteractions: it is only a faster way for those with a mouse
    <div class="strip" onClick={goTo}>
      <div class="phases" aria-hidden="true">
        {phases.map((phase, index) => (
          <span
            key={index}
            class={hasFailed(phase, record) ? 'failed' : ''}
            title={`${line(phaseTitle(phase))}: ${duration(phase.durationMs)}`}
            style={{
              insetInlineStart: `${((phase.startedAt - startedAt) / span) * 100}%`,
              width: `${(phase.durationMs / span) * 100}%`,
            }}
          >
            <i>{phase.name}</i>
          </span>
        ))}
      </div>
      <svg viewBox={`0 0 ${parts.all} ${3 * laneHeight}`} preserveAspectRatio="none" aria-hidden="true">
        {marks.map(({ left, width, lane, failed }, index) => (
          <rect
            key={index}
            class={failed ? 'failed' : ''}
            x={left}
            y={(lane - 1) * laneHeight}
            width={width}
            height={laneHeight - 2}
          />
        ))}
      </svg>
      {selected && <b style={{ insetInlineStart: `${x(selected.at) / (parts.all / 100)}%` }} />}
    </div>
  );
}
