import { useEffect, useMemo, useState } from 'preact/hooks';
import type { GridTrial } from '../../model/grid.ts';
import type { BatchPage, TrialFigures, TrialRow } from '../../model/shapes.ts';
import { type Loaded, useData, useLoaded } from '../data/source.tsx';

export interface LoadedBatch extends Loaded<BatchPage> {
  /** The trials with the summaries that have arrived. */
  trials: GridTrial[];
  /** How many summaries have not arrived yet. */
  waiting: number;
}

/** Summaries, by trial. They never change, so that a page need not ask twice. */
const known = new Map<number, TrialFigures>();

/**
 * A batch that stays up to date. Its grid comes first, then the summaries, a part at a time.
 *
 * @param withSummaries whether summaries are needed
 */
export function useBatch(batch: number | undefined, withSummaries = true): LoadedBatch {
  const { source } = useData();
  const loaded = useLoaded(
    batch === undefined ? undefined : `batch ${batch}`,
    (from, signal) => from.batch(batch ?? 0, signal),
    (event) => batch !== undefined && event.batches.includes(batch),
  );
  const [, setArrived] = useState(0);
  const rows = loaded.value?.trials;

  useEffect(() => {
    if (!rows || batch === undefined || !withSummaries) return;
    const ended = new AbortController();
    const { signal } = ended;
    const load = async () => {
      let missing = rows.filter(({ key, verdict }) => verdict !== undefined && !known.has(key));
      while (missing.length > 0 && !signal.aborted) {
        const summaries = await source.summaries(
          batch,
          missing.map(({ key }) => key),
          signal,
        );
        if (summaries.length === 0) return;
        for (const summary of summaries) known.set(summary.key, summary);
        setArrived((arrived) => arrived + 1);
        missing = missing.filter(({ key }) => !known.has(key));
      }
    };
    // What is missing is asked for again after the next change.
    load().catch(() => undefined);
    return () => ended.abort();
  }, [rows, batch, source, withSummaries]);

  const count = rows?.reduce((sum, { key }) => sum + (known.has(key) ? 1 : 0), 0) ?? 0;
  const trials = useMemo(() => rows?.map(withSummary) ?? [], [rows, count]);
  const finished = rows?.filter(({ verdict }) => verdict !== undefined).length ?? 0;
  return { ...loaded, trials, waiting: finished - count };
}

function withSummary(trial: TrialRow): GridTrial {
  const summary = known.get(trial.key);
  return { ...trial, summary, durationMs: summary?.durationMs ?? trial.durationMs };
}

/** Whether a trial is one that "next failed" stops at. */
export function isFailed({ verdict }: GridTrial): boolean {
  return verdict === 'failed' || verdict === 'void';
}
