import { z } from 'zod';
import { caseSteps } from '../bounds/suite.ts';
import { Identifier, limits } from '../contract/definition.ts';
import { AgentSource } from './agent-source.ts';
import { CheckSource, JudgeSources } from './checks-source.ts';
import { EnvironmentSource } from './environment.ts';
import { GitSource } from './git/git-source.ts';
import { Duration } from './quantities.ts';
import { Healthcheck, Target } from './services.ts';
import { TasksSource } from './tasks-source.ts';
import { OracleSource, OwnFolder, StepTestsSource, TestsSource, Threshold } from './tests-source.ts';
import { FilePath, FromFile, Text } from './text-source.ts';

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

/** The schema of the suite file. The JSON Schema for editors is generated from it. */

const Prompt = z.union(
  [
    z.string(),
    FromFile,
    z.strictObject({
      prompt: Identifier.meta({ description: 'The id of a prompt at the service.' }),
      channel: Identifier.optional().meta({
        description: 'The channel that says which version. Default: the default channel.',
      }),
      version: z.int().min(1).optional().meta({ description: 'A certain version, in place of a channel.' }),
    }),
  ],
  { error: 'expected a text, {file: path}, or {prompt: id, channel: name}' },
);

const StepName = z.string().optional().meta({ description: 'Its name in logs and results.' });

const Prepare = z.union(
  [
    z.string(),
    z.strictObject({ name: StepName, source: z.string().meta({ description: 'The script.' }) }),
    z.strictObject({ name: StepName, file: FilePath }),
  ],
  { error: 'expected a script, {name, source: script}, or {name, file: path}' },
);

const validatorParts = {
  name: StepName,
  capture: z
    .boolean()
    .optional()
    .meta({ description: 'Keep the texts that grading produces. Default: true.' }),
  manifest: z
    .array(z.string().min(1))
    .optional()
    .meta({ description: 'Names of the required validations, in order.' }),
  sourceFiles: z.array(FilePath).optional().meta({ description: 'Files to put beside the validator.' }),
  runsIn: z
    .enum(['fresh', 'same'])
    .optional()
    .meta({
      description:
        'Where a validator reads and runs the work. ' +
        'fresh: in a fresh container with a copy of the workspace (default). ' +
        'same: in the container that the harness worked in. Local.',
    }),
  onError: z
    .enum(['void', 'failed'])
    .optional()
    .meta({ description: 'The verdict if the validator itself cannot run. Default: void. Local.' }),
};

const ValidatorSource = z.union(
  [
    z.strictObject({ ...validatorParts, source: z.string().meta({ description: 'Its source text.' }) }),
    z.strictObject({ ...validatorParts, file: FilePath }),
  ],
  { error: 'expected {source: text} or {file: path}, with name, manifest, sourceFiles, capture' },
);

const PathGlobs = z.array(
  z.string().startsWith('/', 'expected an absolute path or glob, such as /etc/nginx/**'),
);

const verifyParts = {
  in: z
    .enum(['fresh', 'same'])
    .optional()
    .meta({
      description:
        'Where verify runs. fresh: in a fresh sandbox with only the workspace (default). ' +
        'same: in the sandbox that the harness worked in, for cases about the system itself. Local.',
    }),
  keep: PathGlobs.optional().meta({
    description: 'Globs of absolute paths outside the workspace whose changes are part of the work. Local.',
  }),
  ignore: PathGlobs.optional().meta({
    description: 'Globs of absolute paths outside the workspace whose changes do not matter. Local.',
  }),
  unexpected: z
    .enum(['show', 'fail'])
    .optional()
    .meta({
      description:
        'For in: same, what to do with all other changes outside the workspace. ' +
        'show: list them in the result (default). fail: fail the trial. Local.',
    }),
};

/** A script, or a script with the sandbox that it runs in and the changes that are allowed there. */
const Verify = z.union(
  [
    z.string(),
    z.strictObject({ ...verifyParts, source: z.string().meta({ description: 'The script.' }) }),
    z.strictObject({ ...verifyParts, file: FilePath }),
  ],
  { error: 'expected a script, {file: path} or {source: script}, with in, keep, ignore' },
);

const User = z.strictObject({
  kind: z.literal('simulated').meta({ description: 'A model plays the person.' }),
  goal: z
    .string()
    .min(1)
    .meta({ description: 'What the simulated user wants. They end the conversation when they have it.' }),
  prompt: z.string().default('').meta({ description: 'Who they are and how they speak.' }),
  maxTurns: z
    .int()
    .min(1)
    .max(50)
    .default(10)
    .meta({ description: 'The maximum number of their messages. Local.' }),
});

const ArtifactGlobs = z.array(z.string().min(1)).optional().meta({
  description: 'Globs of files in the workspace to keep with the result. Local: not sent to the service.',
});

const Solution = z.union([z.string(), FromFile, OracleSource], {
  error: 'expected a script, {file: path}, or {command, folders, files, env}',
});

const EmptySource = z.strictObject({
  kind: z
    .literal('empty', { error: 'expected empty: no other kind is implemented' })
    .meta({ description: 'No repository.' }),
});

const CaseSource = z.strictObject({
  id: Identifier.meta({ description: 'The name of the case in results. Unique in the suite.' }),
  name: z.string().optional().meta({ description: 'A longer name, for people.' }),
  tags: z
    .array(z.string())
    .optional()
    .meta({ description: 'Labels for people. Offsite does nothing with them.' }),
  variables: z.record(z.string(), z.unknown()).optional().meta({
    description:
      'Values for {{name}} in prompt, prepare, verify, validator, checks and judge, and environment variables in scripts.',
  }),
  source: z
    .union([GitSource, EmptySource], { error: 'expected {git, ref}, or {kind: empty}' })
    .optional()
    .meta({ description: "A repository for the workspace, in place of the suite's. Local." }),
  prepare: Prepare.optional().meta({
    description:
      'A script that makes the state that the harness begins with. Its result is kept as a snapshot.',
  }),
  verify: Verify.optional().meta({
    description: 'A script with one command per line. Each command is a verify step.',
  }),
  checks: z.array(CheckSource).min(1).optional().meta({
    description: 'Simple checks of files, values and commands, in place of a validator; also beside tests.',
  }),
  judge: JudgeSources.optional().meta({
    description: 'A model that judges the work by a rubric, in place of a validator; also beside tests.',
  }),
  validator: ValidatorSource.optional().meta({
    description: 'A program that grades the work and names what it checked.',
  }),
  user: User.optional().meta({ description: "A simulated person, played by the variant's userModel." }),
  tests: TestsSource.optional(),
  steps: z.array(StepSource).min(1).max(caseSteps.count.steps).optional().meta({
    description: 'In place of tests: steps in one sandbox, each with its own instruction and tests. Local.',
  }),
  overall: CombinedSteps.optional(),
  solution: Solution.optional().meta({
    description: 'A script that solves the case, for `offsite check`. Local: not sent to the service.',
  }),
  protected: z
    .array(z.string().min(1))
    .optional()
    .meta({
      description:
        'Globs of workspace files that the harness must not change. Some caches of tools do not count: ' +
        'docs/reference/grading.md, "Protected files". Local.',
    }),
  artifacts: ArtifactGlobs,
  artifactsExcept: z.array(z.string().min(1)).optional().meta({
    description: 'Globs of files that are not kept, even if they match those. Local.',
  }),
  agent: AgentSource.optional(),
  environment: EnvironmentSource.optional().meta({
    description: "The case's environment, in place of the whole suite's. Local: not sent to the service.",
  }),
});

const VariantSource = z.strictObject(
  {
    name: z.string().min(1).optional().meta({ description: "The variant's name in tables. Local." }),
    model: z
      .string({
        error: ({ input }) =>
          input === undefined ? 'a model of offsite.yaml, or none for a harness without one' : undefined,
      })
      .min(1)
      .meta({ description: 'A model of offsite.yaml. Any name if the harness needs no model.' }),
    harness: z.string().min(1).meta({ description: 'The harness, such as codex, claude-code or command.' }),
    userModel: z
      .string()
      .min(1)
      .optional()
      .meta({ description: 'A model of offsite.yaml that plays the simulated user.' }),
    profile: z.string().min(1).optional().meta({ description: 'A profile of offsite.yaml.' }),
    sandbox: z
      .string()
      .min(1)
      .default('local')
      .meta({ description: 'A sandbox of offsite.yaml. Default: local.' }),
  },
  { error: 'expected a model and a harness, such as {model: sonnet, harness: codex}' },
);

export const SuiteFile = z
  .strictObject({
    suite: z
      .strictObject({
        id: Identifier.meta({ description: 'The name of the suite in results.' }),
        name: z.string().optional().meta({ description: 'A longer name, for people.' }),
        prompt: Prompt.optional().meta({
          description: 'What all cases ask. Default with `tasks`: {{instruction}}.',
        }),
      })
      .meta({ description: 'The name of the suite, and what it asks.' }),
    trials: z
      .int()
      .min(1)
      .max(limits.trials)
      .default(1)
      .meta({ description: 'How many trials each run has.' }),
    variants: z
      .array(VariantSource)
      .min(1)
      .max(limits.variants)
      .meta({ description: 'What is evaluated: a model in a harness.' }),
    cases: z
      .array(CaseSource)
      .min(1)
      .max(limits.cases)
      .optional()
      .meta({ description: 'What the agents are asked, and how their work is graded.' }),
    tasks: TasksSource.optional().meta({
      description: 'Tasks in another format, in place of cases. Local.',
    }),
    judges: z.array(z.string().min(1)).optional().meta({
      description: 'Models of offsite.yaml that validators may use. Default for a validator: the first one.',
    }),
    artifacts: ArtifactGlobs,
    environment: EnvironmentSource.optional().meta({
      description: 'The environment of the cases that have none of their own. Local.',
    }),
    source: GitSource.optional().meta({
      description: 'The repository for the workspace of the cases that have no source of their own. Local.',
    }),
  })
  // It also runs if other checks failed, to report all problems together. So the value may have any shape.
  .refine(({ suite, tasks }) => suite?.prompt !== undefined || tasks !== undefined, {
    path: ['suite', 'prompt'],
    message: 'is required: expected a text, {file: path}, or {prompt: id, channel: name}',
    when: ({ value }) => typeof value === 'object' && value !== null,
  })
  .meta({ title: 'Offsite suite' });
export type SuiteFile = z.infer<typeof SuiteFile>;
export type CaseSource = z.infer<typeof CaseSource>;
export type VariantSource = z.infer<typeof VariantSource>;
