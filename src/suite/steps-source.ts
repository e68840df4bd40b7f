import { z } from 'zod';
import { AgentSource } from './agent-source.ts';
import { Healthcheck, Target } from './environment-parts.ts';
import { Duration } from './quantities.ts';
import { OracleSource, OwnFolder, StepTestsSource, Threshold } from './tests-source.ts';
import { FilePath, Text } from './text-source.ts';

/** The schema of `steps:`, and of how their rewards count. */

const Globs = z.array(z.string().min(1)).optional();

/** Only in the workspace: the agent of an earlier step may have left links elsewhere. */
const InWorkspace = Target.refine((path) => !path.startsWith('/'), 'expected a path in the workspace');

export const StepSource = z.strictObject({
  name: z
    .string()
    .min(1)
    .refine(
      (name) => !/[/\\\0]/.test(name) && name !== '.' && name !== '..',
      'expected a name without slashes',
    )
    .meta({ description: 'The name of the step in results.' }),
  instruction: Text.meta({ description: 'The value of {{instruction}} in the prompt of this step.' }),
  empties: z.array(OwnFolder).optional().meta({
    description: 'Folders that are empty when the step begins, except for its files.',
  }),
  folders: z.record(InWorkspace, FilePath).optional().meta({
    description: 'Path in the workspace -> folder. Put there before the step.',
  }),
  files: z.record(InWorkspace, FilePath).optional().meta({ description: 'The same for single files.' }),
  setup: InWorkspace.optional().meta({
    description: "A script in the workspace that the agent's user runs with bash before the step.",
  }),
  healthcheck: Healthcheck.optional().meta({ description: 'What must succeed before the harness runs.' }),
  agent: AgentSource.optional().meta({ description: "In place of the case's `agent`, as a whole." }),
  timeout: Duration.optional().meta({ description: "For the harness. Default: the environment's." }),
  tests: StepTestsSource,
  artifacts: Globs.meta({ description: 'Globs of files to keep after the step, beside those of the case.' }),
  artifactsExcept: Globs.meta({
    description: 'Globs of files that are not kept, even if they match `artifacts`.',
  }),
  solution: OracleSource.optional().meta({ description: 'Solves the step, for `offsite check`.' }),
});
export type StepSource = z.infer<typeof StepSource>;

export const CombinedSteps = z
  .strictObject({
    rewards: z.enum(['mean', 'final']).default('mean').meta({
      description:
        'mean: of each reward, over the steps that have rewards (default). final: those of the last step that ran.',
    }),
    threshold: Threshold,
  })
  .meta({ description: 'How the rewards of steps become those of the trial. Local.' });
export type CombinedSteps = z.infer<typeof CombinedSteps>;
