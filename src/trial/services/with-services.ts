import type { BlobStore } from '../../ledger/blobs.ts';
import type { Found } from '../phases/phase.ts';
import type { TrialServices } from './trial-services.ts';

/** What a trial found, with what became of its services. Call this before they are removed. */
export async function withServices(
  found: Found,
  services: TrialServices | undefined,
  blobs: BlobStore,
): Promise<Found> {
  if (!services) return found;
  const { services: records, artifacts } = await services.found(blobs);
  return { ...found, services: records, artifacts: [...(found.artifacts ?? []), ...artifacts] };
}
