import type { BatchPage } from './shapes.ts';

/**
 * An exported page holds its data in script elements that never run: each has the base64 of the gzip of a
 * JSON document, or of a content. Their ids say what they are.
 */
export interface ExportedFile {
  batch: BatchPage;
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
