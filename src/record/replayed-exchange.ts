import { z } from 'zod';

/** Where the answer of an exchange came from, if it was not from a model. */
export const ReplayedExchange = z
  .object({
    of: z.string().meta({ description: 'The batch or the cassette that has the recorded exchange.' }),
    trial: z.string().meta({ description: 'The trial that was recorded.' }),
    number: z.number().meta({ description: 'Its place among the exchanges of that trial, from 1.' }),
    how: z.enum(['exact', 'known', 'conversation', 'order']).meta({
      description:
        'What of the request is equal. `known`: all but shapes such as dates. `conversation`: what was said, ' +
        'called and returned. `order`: nothing is compared, another harness gets the answers in their order.',
    }),
    differs: z
      .array(z.enum(['context', 'tools', 'options']))
      .optional()
      .meta({ description: 'With `conversation`: the parts of the request that differ.' }),
    again: z.literal(true).optional().meta({
      description: 'The recorded answer was given before: the request came more often than it was recorded.',
    }),
  })
  .meta({ description: 'The answer is a recorded one, and cost nothing.' });
export type ReplayedExchange = z.infer<typeof ReplayedExchange>;
