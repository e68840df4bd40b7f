import { createHash } from 'node:crypto';
import { z } from 'zod';
import { fleetStorage } from '../../bounds/fleet.ts';

export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** An entry of the index, as a storage keeps it. */
export const Indexed = z.object({
  run: z.string().max(fleetStorage.bytes.name),
  ordinal: z.int().nonnegative(),
  record: Sha256,
});

export function hashOf(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
