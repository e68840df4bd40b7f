import { useId } from 'preact/hooks';
import type { TimelineEntry } from '../../../record/timeline.ts';
import type { TrialRecord } from '../../../record/trial-record.ts';
import { entryName } from '../../model/entry.ts';
import { line } from '../parts/foreign.ts';
import { cost, count, duration, took } from '../parts/quantities.ts';
import { narrow, useMedia } from '../parts/use-media.ts';
import { type RowAttributes, VirtualList } from '../parts/virtual-list.tsx';

interface TimelineListProps {
  entries: TimelineEntry[];
  record: TrialRecord;
  selected: number;
  onSelect: (index: number) => void;
}

/** The entries with the time of each since the trial began. */
export function TimelineList({ entries, record, selected, onSelect }: TimelineListProps) {
  const entry = entries[selected];
  const list = useId();
  const isNarrow = useMedia(narrow);
  const span = Math.max(1, record.finishedAt - record.startedAt);
  return (
    <VirtualList
      class="entries"
      role="listbox"
      label="Timeline"
      count={entries.length}
      rowHeight={isNarrow ? 2.4 : 1.9}
      shown={selected}
      activeId={entry && idOf(list, entry)}
      row={(index, attributes) => {
        const each = entries[index];
        return (
          each && (
            <EntryRow
              key={entryName(each)}
              entry={each}
              {...{ list, index, attributes, record, span, onSelect }}
              count={entries.length}
              isSelected={index === selected}
            />
          )
        );
      }}
    />
  );
}

const idOf = (list: string, entry: TimelineEntry) => `${list}-${entryName(entry)}`;

interface EntryRowProps {
  /** The list's id. */
  list: string;
  entry: TimelineEntry;
  index: number;
  count: number;
  attributes: RowAttributes;
  record: TrialRecord;
  /** Milliseconds of the whole trial. */
  span: number;
  isSelected: boolean;
  onSelect: (index: number) => void;
}

function EntryRow({
  list,
  entry,
  index,
  count: all,
  attributes,
  record,
  span,
  isSelected,
  onSelect,
}: EntryRowProps) {
  const { kind, title, failed, at, until, isAbout } = entry;
  const start = share(at - record.startedAt, span);
  const width = share((until ?? at) - at, span);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the list has the keys
    <div
      id={idOf(list, entry)}
      class={`entry ${kind} ${failed ? 'failed' : ''}`}
      role="option"
      aria-selected={isSelected}
      aria-posinset={index + 1}
      aria-setsize={all}
      onClick={() => onSelect(index)}
      {...attributes}
    >
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
    </div>
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
