import { z } from 'zod';
import { Seconds } from '../document.ts';

const difficulties = ['easy', 'medium', 'hard', 'unknown'] as const;

/** The keys of `task.yaml`, as version 0.2.18 of Terminal-Bench has them. */
export const TaskYaml = z.object({
  instruction: z.string().min(1),
  difficulty: z.enum(difficulties, {
    error: ({ input }) =>
      `expected one of ${difficulties.join(', ')}${input === undefined ? ', received undefined' : ''}`,
  }),
  author_name: z.string().optional(),
  author_email: z.string().optional(),
  category: z.string().optional(),
  tags: z.array(z.string()).default([]),
  parser_name: z.string().min(1).default('pytest'),
  max_agent_timeout_sec: Seconds.default(360_000),
  max_test_timeout_sec: Seconds.default(60_000),
  run_tests_in_same_shell: z.boolean().default(false),
  // These keys are about the recording of a terminal, or are estimates.
  disable_asciinema: z.boolean().optional(),
  estimated_duration_sec: z.number().nullish(),
  expert_time_estimate_min: z.number().nullish(),
  junior_time_estimate_min: z.number().nullish(),
  // Older versions have these.
  descriptions: z.array(z.unknown()).optional(),
  env_name: z.string().nullish(),
  test_scripts: z.array(z.string()).optional(),
});

export type TaskYaml = z.output<typeof TaskYaml>;

/** `solution.yaml`: commands that are typed, with keys that say when the next one is typed. */
export const SolutionYaml = z.array(
  z.object({
    command: z.string(),
    min_timeout_sec: z.number().optional(),
    max_timeout_sec: z.number().optional(),
    block: z.boolean().optional(),
    append_enter: z.boolean().optional(),
  }),
);
