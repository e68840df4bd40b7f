import { z } from 'zod';

/** The schema of `tasks:`, which takes the cases of a suite from a folder of tasks in a format of others. */

export const taskFormats = ['harbor', 'terminal-bench', 'swe-bench'] as const;

const Globs = z.array(z.string().min(1)).optional();
const Threshold = z.number();

export const TasksSource = z.strictObject({
  path: z.string().min(1).meta({ description: 'A folder of tasks, or one task, relative to this file.' }),
  format: z.enum(taskFormats).optional().meta({ description: 'Only tasks of this format. Default: all.' }),
  include: Globs.meta({ description: 'Globs of ids. Default: all tasks.' }),
  exclude: Globs.meta({ description: 'Globs of ids to leave out.' }),
  limit: z.int().min(1).optional().meta({ description: 'At most this many tasks.' }),
  seed: z
    .int()
    .min(0)
    .max(2 ** 32 - 1)
    .optional()
    .meta({ description: 'Take the tasks in an order that depends on this number: a sample.' }),
  threshold: z
    .union([Threshold, z.record(z.string(), Threshold)], { error: 'expected a number, or {reward: number}' })
    .optional()
    .meta({ description: 'What each reward must reach for a pass, or some rewards by name. Default: 1.' }),
});
export type TasksSource = z.infer<typeof TasksSource>;
