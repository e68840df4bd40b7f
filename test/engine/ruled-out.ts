import { existsSync } from 'node:fs';
import type { Engine } from '../../src/engine/engine.ts';
import { plainRuntimes } from '../../src/engine/port/engine-port.ts';

/** The checks of what an engine does not tell, or its runtime lacks, and Offsite does without. */
export function ruledOut(capabilities: Engine['capabilities']): string[] {
  const { product, imageStore, security, rootFolder, defaultRuntime } = capabilities;
  const isPlain = plainRuntimes.includes(defaultRuntime);
  // An engine of another machine keeps it there. This machine may have a folder of that name too.
  const isHere = process.env.OFFSITE_TEST_ELSEWHERE === undefined && existsSync(rootFolder);
  const isReadable = imageStore === 'engine' && isPlain && isHere;
  return [
    ...(product === 'Docker' ? [] : ['reports what happened in a container']),
    ...(product === 'Docker' && imageStore === 'engine'
      ? []
      : ['records when an image was last given its name']),
    ...(isReadable ? [] : ['keeps what a container wrote in a separate folder']),
    ...(security.userns || !isPlain
      ? ['gives containers a network of their own that leads nowhere else']
      : []),
    ...(isPlain ? [] : ['lists the processes of a container', 'takes a filter of system calls']),
  ];
}
