import { z } from 'zod';

export const NonEmpty = z.string().min(1);

export const Count = z.int().min(1);

export const FilePath = NonEmpty.describe('A path, relative to this file.');

export const FromFile = z.strictObject({ file: FilePath });

/** A text, or the file that contains it. */
export const Text = z.union([z.string(), FromFile], { error: 'expected a text, or {file: path}' });
export type Text = z.infer<typeof Text>;

/** Throws for a script that bash would read in another way than its author. */
export function checkLineEnds(script: string): void {
  if (/^[^\n]*\r\n/.test(script) && !/[^\r]\n/.test(script))
    throw new Error('its lines end with CR LF, and bash reads the CR as part of a command: save it with LF');
}
