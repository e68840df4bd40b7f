import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { RecordReference } from '../../model/data-source.ts';
import type { CutRecord } from '../../model/shapes.ts';
import { useData } from '../data/source.tsx';
import { TextBlock } from '../parts/text-block.tsx';

/** The record that a trial's page shows. */
export interface ShownRecord extends CutRecord {
  reference: RecordReference;
}

export const RecordContext = createContext<ShownRecord | undefined>(undefined);

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
  text: string;
}

/** A text of the record under its name. What is cut is loaded. */
export function RecordText({ label, pointer, text }: RecordTextProps) {
  const { cuts } = useRecord();
  const load = useLoadValue();
  return (
    <div class="named">
      <h3>{label}</h3>
      <TextBlock
        text={text}
        label={label}
        wholeLength={cuts[pointer]}
        load={(limit) => load(pointer, limit)}
      />
    </div>
  );
}
