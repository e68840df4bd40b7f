import { type ComponentChildren, createContext } from 'preact';
import { useContext, useMemo } from 'preact/hooks';
import { shownValue, valueAt } from '../../model/cut-record.ts';
import type { RecordReference } from '../../model/data-source.ts';
import type { CutRecord, TrialPage } from '../../model/shapes.ts';
import { useData } from '../data/source.tsx';
import { TextBlock } from '../parts/text-block.tsx';

/** The record that a trial's page shows. */
interface ShownRecord extends CutRecord {
  reference: RecordReference;
}

const RecordContext = createContext<ShownRecord | undefined>(undefined);

/** Gives the record of a trial's page to what is in it. */
export function RecordOf({ page, children }: { page: TrialPage; children: ComponentChildren }) {
  const { trial, attempt, found } = page;
  const shown = useMemo(() => found && { ...found, reference: { trial: trial.key, attempt } }, [page]);
  return <RecordContext.Provider value={shown}>{children}</RecordContext.Provider>;
}

export function useRecord(): ShownRecord {
  const shown = useContext(RecordContext);
  if (!shown) throw new Error('the page has no record');
  return shown;
}

/** Loads values that were cut. */
export function useLoadValue(): (pointer: string, limit?: number) => Promise<string> {
  const { source } = useData();
  const { reference } = useRecord();
  return (pointer, limit) => source.value(reference, pointer, limit);
}

interface RecordTextProps {
  label: string;
  /** Its place in the record, as a JSON pointer. */
  pointer: string;
}

/** A text of the record under its name; nothing if the record has none. What is cut is loaded. */
export function RecordText({ label, pointer }: RecordTextProps) {
  const { record, cuts } = useRecord();
  const load = useLoadValue();
  const value = valueAt(record, pointer);
  const length = cuts[pointer];
  if (value === undefined) return null;
  return (
    <div class="named">
      <h3>{label}</h3>
      <TextBlock
        text={shownValue(value)}
        label={label}
        cut={length === undefined ? undefined : { length, load: (limit) => load(pointer, limit) }}
      />
    </div>
  );
}
