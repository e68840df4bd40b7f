import { TextBlock } from '../parts/text-block.tsx';
import { useLoadValue, useRecord } from './record-context.ts';

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
