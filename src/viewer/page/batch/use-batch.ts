import { useEffect, useRef } from 'preact/hooks';
import type { BatchPage, TrialRow } from '../../model/shapes.ts';
import { type Loaded, useData, useLoaded } from '../data/source.tsx';

export interface LoadedBatch extends Loaded<BatchPage> {
  /** Empty until the batch is here. */
  trials: TrialRow[];
}

const none: TrialRow[] = [];

/** A batch that stays up to date. */
export function useBatch(batch: number | undefined): LoadedBatch {
  const loaded = useLoaded(
    batch === undefined ? undefined : `batch ${batch}`,
    (from, signal) => from.batch(batch ?? 0, signal),
    ({ batches }) => batch !== undefined && batches.includes(batch),
  );
  const { value } = loaded;
  const { listeners } = useData();
  const before = useRef<BatchPage | undefined>(undefined);
  useEffect(() => {
    const { current: last } = before;
    before.current = value;
    if (!value?.unread) return;
    const { key } = value.batch;
    // Without progress, the records cannot be stored now, and asking again does not help.
    if (last?.batch.key === key && last.unread !== undefined && last.unread <= value.unread) return;
    for (const listener of listeners) listener({ last: 0, batches: [key], trials: [] });
  }, [value, listeners]);
  return { ...loaded, trials: loaded.value?.trials ?? none };
}

/** Whether a trial is one that "next failed" stops at. */
export function isFailed({ verdict }: TrialRow): boolean {
  return verdict === 'failed' || verdict === 'void';
}
