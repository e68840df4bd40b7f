import type { BatchName } from './shapes.ts';

/** Which batch of which set: `2 of 3 of set_0123456789abcdef`. */
export function partText({ id, number, of }: NonNullable<BatchName['set']>): string {
  return `${number} of ${of} of ${id}`;
}
