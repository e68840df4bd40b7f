import { z } from 'zod';

export const Millis = z.number().meta({ description: 'Milliseconds.' });

export const At = z.number().meta({ description: 'Epoch milliseconds.' });

export const Sha256 = z
  .string()
  .meta({ description: 'The name of a blob: 64 lower-case hexadecimal digits.' });
