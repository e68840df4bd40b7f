import { gunzipSync, gzipSync } from 'node:zlib';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { fleetMessages } from '../bounds/fleet.ts';
import { hashOf } from './storage/storage.ts';

/** A plan that goes over Temporal, for a fleet without a storage: compressed, as base64. */

/** Throws `FLEET_PLAN_TOO_LARGE`. */
export function packedPlan(content: Buffer): string {
  const packed = gzipSync(content).toString('base64');
  const most = fleetMessages.bytes.plan;
  if (packed.length <= most) return packed;
  throw new OffsiteError(`the plan has ${packed.length} bytes, and at most ${most} go over Temporal`, {
    code: 'FLEET_PLAN_TOO_LARGE',
    kind: 'input',
    hint: 'Name a storage in offsite.yaml: fleet: {storage: {folder: /mnt/offsite}}, or a bucket.',
  });
}

/** Throws `FLEET_CONTENT_DAMAGED` for a plan that is not the one with the hash. */
export function unpackedPlan(packed: string, sha256: string): Buffer {
  try {
    const maxOutputLength = fleetMessages.bytes.unpackedPlan;
    const content = gunzipSync(Buffer.from(packed, 'base64'), { maxOutputLength });
    if (hashOf(content) === sha256) return content;
  } catch (error) {
    throw damaged(messageOf(error));
  }
  throw damaged('its hash does not match');
}

function damaged(why: string): OffsiteError {
  return new OffsiteError(`the plan that Temporal has for the batch cannot be read: ${why}`, {
    code: 'FLEET_CONTENT_DAMAGED',
    kind: 'infrastructure',
  });
}
