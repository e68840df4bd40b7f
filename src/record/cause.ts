import { z } from 'zod';

export const PhaseName = z
  .enum(['sandbox', 'harness', 'collect', 'keep', 'verify', 'validate', 'control'])
  .meta({
    description:
      'The phases of a trial, in order. `keep`: only if grading waits until what the agent left is kept. `control`: only if grading gave no verdict, to find out whose fault that is.',
  });
export type PhaseName = z.infer<typeof PhaseName>;

export const Cause = z
  .object({
    kind: z
      .enum(['task', 'agent', 'harness', 'model', 'infrastructure', 'grading', 'replay', 'unknown'])
      .meta({
        description:
          "Who caused it. `task`: the case's own scripts. `harness`: a CLI that failed before its model answered, or began without a tool server. " +
          "`grading`: the case's checks gave no verdict. `replay`: a request that is not recorded. " +
          '`unknown`: what was seen does not show it.',
      }),
    phase: z.union([PhaseName, z.enum(['build', 'install', 'prepare'])]),
    message: z.string(),
    output: z.string().optional().meta({ description: 'The output, if it adds to the message.' }),
    givesAway: z.literal(true).optional().meta({
      description: 'Whether the agent could have found what grades or solves the case.',
    }),
  })
  .meta({ description: 'Why a trial has no verdict, or what went wrong before it got one.' });
export type Cause = z.infer<typeof Cause>;
