import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { ImagePort } from '../engine/port/images.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { listTrials } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { readRecord } from '../record/read-record.ts';
import type { SavedImages } from './write-evidence.ts';

/**
 * Saves the images that the sandboxes of a batch were made from, and those that are kept of sandboxes, to one
 * file: they share their layers there. The images are saved without names, so that nobody who loads them gets
 * a name moved. Resolves with those that the engine has, and with a line for each that it does not have.
 */
export async function saveImages(
  { key }: StoredBatch,
  { ledger, images, file }: { ledger: Ledger; images: Pick<ImagePort, 'find' | 'save'>; file: string },
  signal: AbortSignal,
): Promise<{ saved: SavedImages | undefined; leftOut: string[] }> {
  const wanted = new Set<string>();
  for (const { result } of listTrials(ledger.records, key, 'all')) {
    if (result === undefined) continue;
    const { imageId, left } = readRecord(ledger.blobs.readJson(result));
    if (imageId !== undefined) wanted.add(imageId);
    if (left?.kind === 'image') wanted.add(left.imageId);
  }
  const imageIds: string[] = [];
  const leftOut: string[] = [];
  for (const id of wanted) {
    if (await images.find(id, signal)) imageIds.push(id);
    else leftOut.push(`the image ${id}: the engine does not have it any more`);
  }
  if (imageIds.length === 0) return { saved: undefined, leftOut };
  const archive = await images.save(imageIds, signal);
  await pipeline(archive, createWriteStream(file, { mode: 0o600, flags: 'wx' }), { signal });
  return { saved: { imageIds, file }, leftOut };
}
