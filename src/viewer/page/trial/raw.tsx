import { useMemo, useState } from 'preact/hooks';
import { LongText } from '../parts/blob-text.tsx';
import { line } from '../parts/foreign.ts';
import { plural } from '../parts/quantities.ts';
import { useLoadValue, useRecord } from './record-context.ts';

/** The record as JSON, part by part. */
export function Raw() {
  const { record, cuts } = useRecord();
  const load = useLoadValue();
  const [failure, setFailure] = useState<string>();
  const cutCount = Object.keys(cuts).length;
  const save = async () => {
    const url = URL.createObjectURL(new Blob([await load('')], { type: 'application/octet-stream' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = 'record.json';
    link.click();
    // The browser reads it after the click.
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  return (
    <div class="scroll-pane">
      <p>
        <button type="button" onClick={() => void save().catch((error: Error) => setFailure(error.message))}>
          Save the whole record
        </button>{' '}
        {cutCount > 0 && <span class="dim">{plural(cutCount, 'long text')} shortened below.</span>} {failure}
      </p>
      {Object.entries(record).map(([name, value]) => (
        <Part key={name} name={name} value={value} />
      ))}
    </div>
  );
}

function Part({ name, value }: { name: string; value: unknown }) {
  const [isOpen, setOpen] = useState(false);
  const isShort = typeof value !== 'object' || value === null;
  if (isShort)
    return (
      <p class="member">
        <code>{name}</code> {line(JSON.stringify(value))}
      </p>
    );
  return (
    <details class="file" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <code>{name}</code>{' '}
        <span class="dim">{Array.isArray(value) ? plural(value.length, 'entry', 'entries') : ''}</span>
      </summary>
      {isOpen && <Json value={value} name={name} />}
    </details>
  );
}

function Json({ value, name }: { value: unknown; name: string }) {
  const text = useMemo(() => JSON.stringify(value, null, 2), [value]);
  return <LongText text={text} label={name} />;
}
