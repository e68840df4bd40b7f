import { useMemo } from 'preact/hooks';
import { type TimelineEntry, type TimelineKind, timelineOf } from '../../../record/timeline.ts';
import { entryName } from '../../model/entry.ts';
import { FilterBox } from '../parts/filter-box.tsx';
import { setQuery } from '../router.ts';
import { useShortcuts } from '../shortcuts.ts';
import { EntryPanel } from './entry-panel.tsx';
import { OverviewStrip } from './overview-strip.tsx';
import { useRecord } from './record-context.ts';
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
  const selected = useMemo(() => {
    const found = shown.findIndex((entry) => entryName(entry) === selectedName);
    return found === -1 && selectedName === null ? firstToShow(shown) : found;
  }, [shown, selectedName]);
  const entry = shown[selected];
  const select = (index: number) => {
    const next = shown[Math.max(0, Math.min(index, shown.length - 1))];
    if (next) setQuery({ sel: entryName(next) });
  };
  const nextFailed = (direction: 1 | -1) => {
    for (let index = selected + direction; index >= 0 && index < shown.length; index += direction)
      if (shown[index]?.failed) return select(index);
  };
  useShortcuts([
    { keys: ['ArrowDown'], does: 'Next entry of the timeline', run: () => select(selected + 1) },
    { keys: ['ArrowUp'], does: 'Previous entry', run: () => select(selected - 1) },
    { keys: ['e'], does: 'Next entry that failed', run: () => nextFailed(1) },
    { keys: ['E'], does: 'Previous entry that failed', run: () => nextFailed(-1) },
    { keys: ['Home'], does: 'First entry', run: () => select(0) },
    { keys: ['End'], does: 'Last entry', run: () => select(shown.length - 1) },
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
      <OverviewStrip record={record} entries={shown} selected={entry} onSelect={select} />
      <div class="split">
        <TimelineList entries={shown} record={record} selected={selected} onSelect={select} />
        {entry ? (
          <EntryPanel key={entryName(entry)} entry={entry} />
        ) : (
          <p class="notice">{shown.length === 0 ? 'Nothing matches the filter.' : 'Select an entry.'}</p>
        )}
      </div>
    </div>
  );
}

function filtered(entries: TimelineEntry[], filter: string, hidden: readonly string[]): TimelineEntry[] {
  const kinds = new Set(hidden.flatMap((name) => groups[name] ?? []));
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0 && kinds.size === 0) return entries;
  return entries.filter(({ kind, title, failed }) => {
    if (kinds.has(kind)) return false;
    if (words.length === 0) return true;
    if (kind === 'phase') return false;
    const text = `${kind} ${title} ${failed ? 'failed' : ''}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** The entry to show first: the check that failed, else the phase that failed, else the last message. */
function firstToShow(entries: readonly TimelineEntry[]): number {
  const failedCheck = entries.findIndex(
    ({ kind, failed }) => failed && (kind === 'verify' || kind === 'validation'),
  );
  if (failedCheck !== -1) return failedCheck;
  const failedPhase = entries.findIndex(({ kind, failed }) => failed && kind === 'phase');
  if (failedPhase !== -1) return failedPhase;
  const lastMessage = entries.findLastIndex(({ kind }) => kind === 'message');
  return lastMessage === -1 ? 0 : lastMessage;
}

function toggled(names: readonly string[], name: string): string[] {
  return names.includes(name) ? names.filter((each) => each !== name) : [...names, name];
}
