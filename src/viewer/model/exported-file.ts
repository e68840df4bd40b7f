import type { BatchPage, TrialRow } from './shapes.ts';

/**
 * An exported page holds its data in script elements that never run: each has the base64 of the gzip of a
 * JSON document, or of a content. Their ids say what they are.
 */
export interface ExportedFile {
  /** Absent in the first version. */
  version?: number;
  batch: BatchPage;
  /** In the first version: what its rows of finished trials lack. */
  summaries?: FirstSummary[];
}

interface FirstSummary extends Pick<TrialRow, 'key' | 'reason' | 'durationMs' | 'costUsd'> {
  totalTokens?: number | undefined;
}

/** The version of {@link ExportedFile} that this page reads and writes. */
export const fileVersion = 2;

/** The batch in a file of any version up to this one; `newer` for a later one. */
export function batchIn({ version = 1, batch, summaries = [] }: ExportedFile): BatchPage | 'newer' {
  if (version > fileVersion) return 'newer';
  const found = new Map(summaries.map((summary) => [summary.key, summary]));
  const trials = batch.trials.map((trial): TrialRow => {
    const summary = found.get(trial.key);
    if (!summary) return trial;
    const { reason, durationMs, costUsd, totalTokens: tokens } = summary;
    return { ...trial, reason, durationMs, costUsd, tokens };
  });
  return { ...batch, trials };
}

/** The media type of the elements. */
export const dataType = 'application/gzip;base64';

export const idOfFile = 'data-file';

export function idOfTrial(trial: number, attempt?: number): string {
  return attempt === undefined ? `data-trial-${trial}` : `data-trial-${trial}-${attempt}`;
}

export function idOfBlob(sha256: string): string {
  return `data-blob-${sha256}`;
}
