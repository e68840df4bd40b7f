import { z } from 'zod';

export const Millis = z.number().meta({ description: 'Milliseconds.' });

export const At = z.number().meta({ description: 'Epoch milliseconds.' });

export const SteadySpan = z
  .object({
    of: z.string().meta({ description: 'Which clock: of one boot of a machine, or of one process.' }),
    startedAt: Millis,
    finishedAt: Millis,
  })
  .meta({ description: 'When it ran, by a clock that nobody can set.' });

export const Sha256 = z
  .string()
  .meta({ description: 'The name of a blob: 64 lower-case hexadecimal digits.' });
