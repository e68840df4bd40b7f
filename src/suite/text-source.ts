import { z } from 'zod';

export const FilePath = z.string().min(1).meta({ description: 'A path, relative to this file.' });

export const FromFile = z.strictObject({ file: FilePath });

/** A text, or the file that contains it. */
export const Text = z.union([z.string(), FromFile], { error: 'expected a text, or {file: path}' });
export type Text = z.infer<typeof Text>;
