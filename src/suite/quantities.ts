import { z } from 'zod';
import { Count } from './text-source.ts';
import { byteUnits, readByteSize, readDuration, timeUnits } from './units.ts';

/** `512m`, `1.5g`, or a number of bytes; read as bytes (k, m and g are powers of 1024). */
export const ByteSize = z
  .union([Count, z.string().regex(/^\d+(\.\d+)?[kmg]$/i, 'expected a size such as 512m or 2g')], {
    error: 'expected a size such as 512m or 2g, or a number of bytes',
  })
  .transform((size) => Number(typeof size === 'number' ? size : readByteSize(size)));

/**
 * The memory of a container: a {@link ByteSize} that an engine accepts. A small number is one whose unit
 * somebody forgot.
 */
export const MemorySize = ByteSize.refine((bytes) => bytes >= leastMemory, {
  error: ({ input }) => `${input} bytes are too few to start anything; expected a size such as 512m or 2g`,
});

/** Engines refuse less. */
const leastMemory = 6 * 1024 ** 2;

/** `90s`, `10m`, `500ms`, `2h`; read as milliseconds. */
export const Duration = z
  .string({ error: 'expected a duration such as 90s, 10m or 2h' })
  .regex(/^\d+(\.\d+)?(ms|s|m|h)$/, 'expected a duration such as 90s, 10m or 2h')
  .transform((duration) => Number(readDuration(duration)));

const largestFirst = (units: Readonly<Record<string, number>>) =>
  Object.entries(units).toSorted(([, one], [, other]) => other - one);

/** How people write a number that one of these schemas has read; undefined for other schemas. */
export function writtenAs(schema: z.core.$ZodType, value: unknown): string | undefined {
  if (typeof value !== 'number') return undefined;
  const units = isKind(schema, Duration) ? timeUnits : isKind(schema, ByteSize) ? byteUnits : undefined;
  const fitting = largestFirst(units ?? {}).find(([, size]) => value % size === 0);
  return fitting && `${value / fitting[1]}${fitting[0]}`;
}

/** Whether a schema is this one, perhaps with further checks. */
function isKind(schema: z.core.$ZodType, kind: z.ZodPipe): boolean {
  return schema instanceof z.ZodPipe && schema.in === kind.in;
}

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
