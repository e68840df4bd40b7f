import { existsSync } from 'node:fs';
import type { Engine } from '../../src/engine/engine.ts';

/** The checks of what an engine does not tell, and Offsite does without. */
export function ruledOut(capabilities: Engine['capabilities']): string[] {
  const { reportsEvents, recordsNaming, imageStore, security, rootFolder } = capabilities;
  // An engine of another machine keeps it there.
  const isReadable = imageStore === 'engine' && existsSync(rootFolder);
  return [
    ...(reportsEvents ? [] : ['reports what happened in a container']),
    ...(recordsNaming ? [] : ['records when an image was last given its name']),
    ...(isReadable ? [] : ['keeps what a container wrote in a separate folder']),
    ...(security.userns ? ['gives containers a network of their own that leads nowhere else'] : []),
  ];
}
