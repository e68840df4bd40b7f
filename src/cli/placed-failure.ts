import type { Config } from '../suite/config-file.ts';
import { BadFile } from '../suite/file-issues.ts';
import { SandboxRefused } from '../trial/image/base-image.ts';

/** An error whose cause is in `offsite.yaml`, with its place there. All others are returned as they are. */
export function placedFailure(error: unknown, { issue, sandboxes }: Config): unknown {
  if (!(error instanceof SandboxRefused) || error.kind !== 'input') return error;
  const { sandbox, setting } = error.refused;
  if (!issue || !Object.hasOwn(sandboxes, sandbox)) return error;
  const message = error.hint === undefined ? error.message : `${error.message}. ${error.hint}`;
  return new BadFile([issue(['sandboxes', sandbox, ...(setting ? [setting] : [])], message)]);
}
