import type { TimelineEntry } from '../../../record/timeline.ts';
import { type EntryFigure, entryDetails } from '../../model/entry.ts';
import { BlobText } from '../parts/blob-text.tsx';
import { line } from '../parts/foreign.ts';
import { Figure } from '../parts/heading.tsx';
import { byteSize, cost, count, duration, took } from '../parts/quantities.ts';
import { RecordText, useRecord } from './record-context.tsx';

/** The details of the selected entry. */
export function EntryPanel({ entry }: { entry: TimelineEntry }) {
  const { record } = useRecord();
  const { figures, texts, blobs } = entryDetails(record, entry);
  const { kind, title, at, until, isAbout, failed } = entry;
  return (
    <section class="entry-panel" aria-label="Selected entry">
      <h2 class="entry-heading">
        <span class="tag">{kind}</span>
        {failed && <span class="tag failed">failed</span>} <span class="entry-title">{line(title)}</span>
      </h2>
      <dl class="facts">
        <Figure name="Began" value={`+${duration(at - record.startedAt)}`} />
        {until !== undefined && <Figure name="Took" value={took(until - at, isAbout)} />}
        {figures.map((figure) => (
          <Figure key={figure.label} name={figure.label} value={written(figure)} />
        ))}
      </dl>
      {texts.map(({ label, pointer, text }) => (
        <RecordText key={pointer} {...{ label, pointer, text }} />
      ))}
      {blobs.map(({ label, sha256 }) => (
        <BlobText key={label} {...{ label, sha256 }} />
      ))}
      {texts.length === 0 && blobs.length === 0 && <p class="dim">Nothing more was kept of it.</p>}
    </section>
  );
}

function written({ value, unit }: EntryFigure): string {
  if (typeof value === 'string') return line(value);
  switch (unit) {
    case 'milliseconds':
      return duration(value);
    case 'bytes':
      return byteSize(value);
    case 'dollars':
      return cost(value);
    case 'tokens':
      return `${count(value)} tokens`;
    default:
      return String(value);
  }
}
