import type { TimelineEntry } from '../../../record/timeline.ts';
import { entryDetails } from '../../model/entry.ts';
import { line } from '../parts/foreign.ts';
import { Figure } from '../parts/heading.tsx';
import { duration, took } from '../parts/quantities.ts';
import { BlobText } from '../parts/text-block.tsx';
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
        {figures.map(({ label, value }) => (
          <Figure key={label} name={label} value={line(value)} />
        ))}
      </dl>
      {texts.map((text) => (
        <RecordText key={text.pointer} {...text} />
      ))}
      {blobs.map((blob) => (
        <BlobText key={blob.label} {...blob} />
      ))}
      {texts.length === 0 && blobs.length === 0 && <p class="dim">Nothing more was kept of it.</p>}
    </section>
  );
}
