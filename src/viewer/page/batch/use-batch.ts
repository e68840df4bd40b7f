import type { BatchPage, TrialRow } from '../../model/shapes.ts';
import { type Loaded, useLoaded } from '../data/source.tsx';

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
  return { ...loaded, trials: loaded.value?.trials ?? none };
}

/** Whether a trial is one that "next failed" stops at. */
export function isFailed({ verdict }: TrialRow): boolean {
  return verdict === 'failed' || verdict === 'void';
}
