import { z } from 'zod';

/**
 * A name that other records refer to: not empty, and able to travel as UTF-8 (no lone surrogates, no NUL).
 */
export const Identifier = z
  .string()
  .min(1)
  .refine((text) => text.isWellFormed() && !text.includes('\0'), {
    message: 'must be well-formed text without NUL',
  });

/**
 * A string whose full list of values the specification does not show. `known` are the values this service
 * writes; others are accepted.
 */
export function openValue(...known: string[]) {
  return z.string().meta({ examples: known });
}

/** A count, an index or a size: a whole number from 0. */
export const Count = z.int().min(0);

/** Epoch milliseconds, as `at`, `startedAt` and `startedAtMillis` carry them inside a trial. */
export const EpochMillis = z.number().meta({ description: 'Epoch milliseconds.' });

/** ISO 8601 date-time, as the `...At` fields of a run record carry it. */
export const DateTime = z.string().meta({ format: 'date-time' });
