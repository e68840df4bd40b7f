import { z } from 'zod';

/** A property that some machines have and others do not, such as `gpu`. */
export const Label = z
  .string()
  .regex(/^[a-z0-9][\w.-]{0,39}$/, 'expected a label such as big-disk: lower-case letters, digits and ._-');

/** The architecture of an engine's machine, as images and labels name it. */
export function architecture(arch: string): string {
  return arch === 'x86_64' ? 'amd64' : arch === 'aarch64' ? 'arm64' : arch;
}

/** The first label that a machine lacks; undefined if it has all of them. */
export function missingLabel(
  needs: readonly string[],
  { labels, arch }: { labels: readonly string[]; arch: string },
): string | undefined {
  return needs.find((label) => !labels.includes(label) && label !== architecture(arch));
}
