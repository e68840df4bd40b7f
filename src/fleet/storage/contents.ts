import { createHash } from 'node:crypto';
import { z } from 'zod';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { parseForeignJson } from '../../base/parse-json.ts';
import { fleetStorage } from '../../bounds/fleet.ts';
import type { IndexedResult } from './storage.ts';

export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** An entry of the index, as a storage keeps it. */
const Indexed = z.object({
  run: z.string().max(fleetStorage.bytes.name),
  ordinal: z.int().nonnegative(),
  record: Sha256,
});

export function hashOf(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Reads a note. Throws `FLEET_CONTENT_DAMAGED` with its place if it is not JSON. */
export function noteIn(content: Buffer, place: string): unknown {
  try {
    return parseForeignJson(content.toString('utf8'));
  } catch (error) {
    throw damaged(place, messageOf(error));
  }
}

/** Reads an entry of the index. Throws `FLEET_CONTENT_DAMAGED` with its place. */
export function resultIn(content: Buffer, place: string): IndexedResult {
  const parsed = Indexed.safeParse(noteIn(content, place));
  if (parsed.success) return parsed.data;
  throw damaged(place, 'it is not the result of a trial');
}

export function damaged(place: string, why: string): OffsiteError {
  return new OffsiteError(`${place} is damaged: ${why}`, {
    code: 'FLEET_CONTENT_DAMAGED',
    kind: 'infrastructure',
    hint: 'Remove it from the storage. Whoever wrote it can write it again.',
  });
}
