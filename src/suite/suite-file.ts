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
import { Count, FilePath, FromFile, NonEmpty, Text } from './text-source.ts';

/** The schema of `steps:`, and of how their rewards count. */

const Globs = z.array(NonEmpty).optional();

/** Only in the workspace: the agent of an earlier step may have left links elsewhere. */
const InWorkspace = Target.refine((path) => !path.startsWith('/'), 'expected a path in the workspace');

export const StepSource = z.strictObject({
  name: NonEmpty.refine(
    (name) => !/[/\\\0]/.test(name) && name !== '.' && name !== '..',
    'expected a name without slashes',
  ).describe('The name of the step in results.'),
  instruction: Text.describe('The value of {{instruction}} in the prompt of this step.'),
  empties: z
    .array(OwnFolder)
    .optional()
    .describe('Folders that are empty when the step begins, except for its files.'),
  folders: z
    .record(InWorkspace, FilePath)
    .optional()
    .describe('Path in the workspace -> folder. Put there before the step.'),
  files: z.record(InWorkspace, FilePath).optional().describe('The same for single files.'),
  setup: InWorkspace.optional().describe(
    "A script in the workspace that the agent's user runs with bash before the step.",
  ),
  healthcheck: Healthcheck.optional().describe('What must succeed before the harness runs.'),
  agent: AgentSource.optional().describe("In place of the case's `agent`, as a whole."),
  timeout: Duration.optional().describe("For the harness. Default: the environment's."),
  tests: StepTestsSource,
  artifacts: Globs.describe('Globs of files to keep after the step, beside those of the case.'),
  artifactsExcept: Globs.describe('Globs of files that are not kept, even if they match `artifacts`.'),
  solution: OracleSource.optional().describe('Solves the step, for `offsite check`.'),
});
export type StepSource = z.infer<typeof StepSource>;

export const CombinedSteps = z
  .strictObject({
    rewards: z
      .enum(['mean', 'final'])
      .default('mean')
      .describe(
        'mean: of each reward, over the steps that have rewards (default). final: those of the last step that ran.',
      ),
    threshold: Threshold,
  })
  .describe('How the rewards of steps become those of the trial. Local.');
export type CombinedSteps = z.infer<typeof CombinedSteps>;

/** The schema of the suite file. The JSON Schema for editors is generated from it. */

const Prompt = z.union(
  [
    z.string(),
    FromFile,
    z.strictObject({
      prompt: Identifier.describe('The id of a prompt at the service.'),
      channel: Identifier.optional().describe(
        'The channel that says which version. Default: the default channel.',
      ),
      version: Count.optional().describe('A certain version, in place of a channel.'),
    }),
  ],
  { error: 'expected a text, {file: path}, or {prompt: id, channel: name}' },
);

const StepName = z.string().optional().describe('Its name in logs and results.');

/** A script, inline or in a file, with these keys beside it. */
function scriptForms<Parts extends z.core.$ZodShape>(parts: Parts, description = 'The script.') {
  return [
    z.strictObject({ ...parts, source: z.string().describe(description) }),
    z.strictObject({ ...parts, file: FilePath }),
  ] as const;
}

const Prepare = z.union([z.string(), ...scriptForms({ name: StepName })], {
  error: 'expected a script, {name, source: script}, or {name, file: path}',
});

const ValidatorSource = z.union(
  scriptForms(
    {
      name: StepName,
      capture: z.boolean().optional().describe('Keep the texts that grading produces. Default: true.'),
      manifest: z.array(NonEmpty).optional().describe('Names of the required validations, in order.'),
      sourceFiles: z.array(FilePath).optional().describe('Files to put beside the validator.'),
      runsIn: z
        .enum(['fresh', 'same'])
        .optional()
        .describe(
          'Where a validator reads and runs the work. ' +
            'fresh: in a fresh container with a copy of the workspace (default). ' +
            'same: in the container that the harness worked in. Local.',
        ),
      onError: z
        .enum(['void', 'failed'])
        .optional()
        .describe('The verdict if the validator itself cannot run. Default: void. Local.'),
    },
    'Its source text.',
  ),
  {
    error: 'expected {source: text} or {file: path}, with name, manifest, sourceFiles, capture',
  },
);

const PathGlobs = z.array(
  z.string().startsWith('/', 'expected an absolute path or glob, such as /etc/nginx/**'),
);

/** A script, or a script with the sandbox that it runs in and the changes that are allowed there. */
const Verify = z.union(
  [
    z.string(),
    ...scriptForms({
      in: z
        .enum(['fresh', 'same'])
        .optional()
        .describe(
          'Where verify runs. fresh: in a fresh sandbox with only the workspace (default). ' +
            'same: in the sandbox that the harness worked in, for cases about the system itself. Local.',
        ),
      keep: PathGlobs.optional().describe(
        'Globs of absolute paths outside the workspace whose changes are part of the work. Local.',
      ),
      ignore: PathGlobs.optional().describe(
        'Globs of absolute paths outside the workspace whose changes do not matter. Local.',
      ),
      unexpected: z
        .enum(['show', 'fail'])
        .optional()
        .describe(
          'For in: same, what to do with all other changes outside the workspace. ' +
            'show: list them in the result (default). fail: fail the trial. Local.',
        ),
    }),
  ],
  {
    error: 'expected a script, {file: path} or {source: script}, with in, keep, ignore',
  },
);

const User = z.strictObject({
  kind: z.literal('simulated').describe('A model plays the person.'),
  goal: NonEmpty.describe('What the simulated user wants. They end the conversation when they have it.'),
  prompt: z.string().default('').describe('Who they are and how they speak.'),
  maxTurns: Count.max(50).default(10).describe('The maximum number of their messages. Local.'),
});

const ArtifactGlobs = z
  .array(NonEmpty)
  .optional()
  .describe('Globs of files in the workspace to keep with the result. Local: not sent to the service.');

const Solution = z.union([z.string(), FromFile, OracleSource], {
  error: 'expected a script, {file: path}, or {command, folders, files, env}',
});

const EmptySource = z.strictObject({
  kind: z
    .literal('empty', { error: 'expected empty: no other kind is implemented' })
    .describe('No repository.'),
});

const CaseSource = z.strictObject({
  id: Identifier.describe('The name of the case in results. Unique in the suite.'),
  name: z.string().optional().describe('A longer name, for people.'),
  tags: z.array(z.string()).optional().describe('Labels for people. Offsite does nothing with them.'),
  variables: z
    .record(z.string(), z.unknown())
    .optional()
    .describe(
      'Values for {{name}} in prompt, prepare, verify, validator, checks and judge, and environment variables in scripts.',
    ),
  source: z
    .union([GitSource, EmptySource], { error: 'expected {git, ref}, or {kind: empty}' })
    .optional()
    .describe("A repository for the workspace, in place of the suite's. Local."),
  prepare: Prepare.optional().describe(
    'A script that makes the state that the harness begins with. Its result is kept as a snapshot.',
  ),
  verify: Verify.optional().describe('A script with one command per line. Each command is a verify step.'),
  checks: z
    .array(CheckSource)
    .min(1)
    .optional()
    .describe('Simple checks of files, values and commands, in place of a validator; also beside tests.'),
  judge: JudgeSources.optional().describe(
    'A model that judges the work by a rubric, in place of a validator; also beside tests.',
  ),
  validator: ValidatorSource.optional().describe('A program that grades the work and names what it checked.'),
  user: User.optional().describe("A simulated person, played by the variant's userModel."),
  tests: TestsSource.optional(),
  steps: z
    .array(StepSource)
    .min(1)
    .max(caseSteps.count.steps)
    .optional()
    .describe('In place of tests: steps in one sandbox, each with its own instruction and tests. Local.'),
  overall: CombinedSteps.optional(),
  solution: Solution.optional().describe(
    'A script that solves the case, for `offsite check`. Local: not sent to the service.',
  ),
  protected: z
    .array(NonEmpty)
    .optional()
    .describe(
      'Globs of workspace files that the harness must not change. Some caches of tools do not count: ' +
        'docs/reference/grading.md, "Protected files". Local.',
    ),
  artifacts: ArtifactGlobs,
  artifactsExcept: z
    .array(NonEmpty)
    .optional()
    .describe('Globs of files that are not kept, even if they match those. Local.'),
  agent: AgentSource.optional(),
  environment: EnvironmentSource.optional().describe(
    "The case's environment, in place of the whole suite's. Local: not sent to the service.",
  ),
});

const VariantSource = z.strictObject(
  {
    name: NonEmpty.optional().describe("The variant's name in tables. Local."),
    model: z
      .string({
        error: ({ input }) =>
          input === undefined ? 'a model of offsite.yaml, or none for a harness without one' : undefined,
      })
      .min(1)
      .describe('A model of offsite.yaml, or `none` if the program of `command` or `acp` asks none.'),
    harness: NonEmpty.describe('The harness, such as codex, claude-code or command.'),
    userModel: NonEmpty.optional().describe('A model of offsite.yaml that plays the simulated user.'),
    profile: NonEmpty.optional().describe('A profile of offsite.yaml.'),
    sandbox: NonEmpty.default('local').describe('A sandbox of offsite.yaml. Default: local.'),
  },
  { error: 'expected a model and a harness, such as {model: sonnet, harness: codex}' },
);

export const SuiteFile = z
  .strictObject({
    suite: z
      .strictObject({
        id: Identifier.describe('The name of the suite in results.'),
        name: z.string().optional().describe('A longer name, for people.'),
        prompt: Prompt.optional().describe('What all cases ask. Default with `tasks`: {{instruction}}.'),
      })
      .describe('The name of the suite, and what it asks.'),
    trials: Count.max(limits.trials).default(1).describe('How many trials each run has.'),
    variants: z
      .array(VariantSource)
      .min(1)
      .max(limits.variants)
      .describe('What is evaluated: a model in a harness.'),
    cases: z
      .array(CaseSource)
      .min(1)
      .max(limits.cases)
      .optional()
      .describe('What the agents are asked, and how their work is graded.'),
    tasks: TasksSource.optional().describe('Tasks in another format, in place of cases. Local.'),
    judges: z
      .array(NonEmpty)
      .optional()
      .describe('Models of offsite.yaml that validators may use. Default for a validator: the first one.'),
    artifacts: ArtifactGlobs,
    environment: EnvironmentSource.optional().describe(
      'The environment of the cases that have none of their own. Local.',
    ),
    source: GitSource.optional().describe(
      'The repository for the workspace of the cases that have no source of their own. Local.',
    ),
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
