import { useId } from 'preact/hooks';
import type { TimelineEntry } from '../../../record/timeline.ts';
import type { TrialRecord } from '../../../record/trial-record.ts';
import { entryName } from '../../model/entry.ts';
import { line } from '../parts/foreign.ts';
import { cost, count, duration, took } from '../parts/quantities.ts';
import { narrow, useMedia } from '../parts/use-media.ts';
import { VirtualList } from '../parts/virtual-list.tsx';

interface TimelineListProps {
  entries: TimelineEntry[];
  record: TrialRecord;
  selected: TimelineEntry | undefined;
  onSelect: (entry: TimelineEntry) => void;
}

/** The entries with the time of each since the trial began. */
export function TimelineList({ entries, record, selected, onSelect }: TimelineListProps) {
  const list = useId();
  const idOf = (entry: TimelineEntry) => `${list}-${entryName(entry)}`;
  const isNarrow = useMedia(narrow);
  return (
    <VirtualList
      class="entries"
      role="listbox"
      label="Timeline"
      count={entries.length}
      rowHeight={isNarrow ? 2.4 : 1.9}
      shown={selected && entries.indexOf(selected)}
      activeId={selected && idOf(selected)}
      row={(index, attributes) => {
        const entry = entries[index];
        return (
          entry && (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list has the keys
            <div
              key={entryName(entry)}
              id={idOf(entry)}
              class={`entry ${entry.kind} ${entry.failed ? 'failed' : ''}`}
              role="option"
              aria-selected={entry === selected}
              aria-posinset={index + 1}
              aria-setsize={entries.length}
              onClick={() => onSelect(entry)}
              {...attributes}
            >
              <EntryCells entry={entry} record={record} />
            </div>
          )
        );
      }}
    />
  );
}

function EntryCells({ entry, record }: { entry: TimelineEntry; record: TrialRecord }) {
  const { kind, title, failed, at, until, isAbout } = entry;
  const span = Math.max(1, record.finishedAt - record.startedAt);
  const start = share(at - record.startedAt, span);
  const width = share((until ?? at) - at, span);
  return (
    <>
      <span class="at">+{duration(at - record.startedAt)}</span>
      <span class="kind">{kind}</span>
      <span class="title">
        {failed && (
          <span class="sign failed">
            ✗<span class="unseen"> failed </span>
          </span>
        )}
        {line(title)}
      </span>
      <span class="extra">{extraOf(entry, record)}</span>
      <span class="took">{until === undefined ? '' : took(until - at, isAbout)}</span>
      <span class="axis" aria-hidden="true">
        <span style={{ insetInlineStart: `${start}%`, width: `${Math.min(width, 100 - start)}%` }} />
      </span>
    </>
  );
}

const share = (part: number, whole: number) => Math.max(0, Math.min(100, (part / whole) * 100));

/** Tokens and cost of a request to a model. */
function extraOf({ kind, index }: TimelineEntry, { models }: TrialRecord): string {
  if (kind !== 'exchange') return '';
  const { usage, status } = models?.exchanges[index] ?? { usage: {}, status: undefined };
  const { inputTokens, outputTokens, cacheReadTokens, costUsd } = usage;
  const parts = [
    ...(status !== undefined && status !== 200 ? [`${status}`] : []),
    ...(inputTokens === undefined ? [] : [`${count(inputTokens)} in`]),
    ...(outputTokens === undefined ? [] : [`${count(outputTokens)} out`]),
    ...(cacheReadTokens ? [`${count(cacheReadTokens)} cached`] : []),
    ...(costUsd === undefined ? [] : [cost(costUsd)]),
  ];
  return parts.join(' · ');
}
