import type { Config } from '../suite/config-file.ts';
import { BadFile } from '../suite/file-issues.ts';
import { SandboxImageMissing } from '../trial/image/base-image.ts';

/** An error whose cause is in `offsite.yaml`, with its place there. All others are returned as they are. */
export function placedFailure(error: unknown, { issue, sandboxes }: Config): unknown {
  if (!(error instanceof SandboxImageMissing) || error.kind !== 'input') return error;
  if (!issue || !Object.hasOwn(sandboxes, error.sandbox)) return error;
  const message = error.hint === undefined ? error.message : `${error.message}. ${error.hint}`;
  return new BadFile([issue(['sandboxes', error.sandbox, 'image'], message)]);
}
