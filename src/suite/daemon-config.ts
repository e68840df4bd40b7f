import { z } from 'zod';
import { Duration } from './quantities.ts';

/** Settings of `offsite daemon`: `daemon` of `offsite.yaml`. */
export const DaemonConfig = z.strictObject({
  suites: z
    .array(z.string().min(1))
    .default([])
    .meta({ description: 'Ids of suites at the service. The daemon polls all of their cases for runs.' }),
  cases: z.array(z.string().min(1)).default([]).meta({ description: 'Ids of further cases to poll.' }),
  poll: z
    .strictObject({
      min: Duration.default(5_000).meta({ description: 'The shortest time between two polls.' }),
      max: Duration.default(60_000).meta({ description: 'The longest time between two polls.' }),
    })
    .prefault({})
    .refine(({ min, max }) => min > 0 && min <= max, 'expected min to be more than 0 and no more than max')
    .meta({
      description:
        'The time between two polls of one poll target: min while runs arrive, up to max while none do. ' +
        'It varies at random by a quarter.',
    }),
  profiles: z
    .record(z.string(), z.string())
    .default({})
    .meta({ description: 'Harness -> profile, for runs whose record names no profile.' }),
  judges: z
    .array(z.string().min(1))
    .default([])
    .meta({ description: 'Models that the validators of the daemon’s runs may use.' }),
  listen: z
    .string()
    .regex(/^(.+:)?\d{1,5}$/, 'expected an address such as 127.0.0.1:9320')
    .optional()
    .meta({ description: 'The address that serves /healthz, /readyz, /metrics and /status. Default: none.' }),
});
export type DaemonConfig = z.infer<typeof DaemonConfig>;
