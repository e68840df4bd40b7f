import { z } from 'zod';
import { Artifact, Usage, VerifyStep } from '../contract/report.ts';
import { Judgment, Validation } from '../contract/validation.ts';
import { Cause, PhaseName } from './cause.ts';
import { EnvironmentStep, ServiceRecord, UsedImage } from './environment.ts';
import { FileChange, LeftState, PathList } from './files.ts';
import { CommandEntry, HarnessEnding, HarnessEvent } from './harness.ts';
import { At, Millis, Sha256, SteadySpan } from './measures.ts';
import { HostConnection, ModelAccount, ReplayedTrial } from './model-account.ts';

/**
 * The version of the record that this program writes. Add an upgrade in `read-record.ts` when you raise it.
 */
export const recordVersion = 2;

const StepResult = z
  .object({
    name: z.string(),
    startedAt: At.optional().meta({ description: 'Absent if the step was not run.' }),
    finishedAt: At.optional(),
    verdict: z.enum(['passed', 'failed', 'void']).optional(),
    cause: Cause.optional(),
    rewards: z.record(z.string(), z.number()).optional().meta({
      description: 'Absent if its tests gave none.',
    }),
    harness: HarnessEnding.optional(),
  })
  .meta({ description: 'A step of a trial whose case has several, which run in one sandbox.' });

const Regrade = z
  .object({
    of: Sha256.meta({ description: 'The blob with the record of the trial.' }),
    suite: z.string().optional().meta({
      description: 'The suite file that said how to grade. Absent if the plan of the batch said it.',
    }),
    notes: z.array(z.string()).meta({ description: 'How this grading differs from one in the trial.' }),
  })
  .meta({ description: 'Set if this record is a later grading of what a trial left.' });

const Subject = z
  .object({
    caseName: z.string(),
    ordinal: z.number(),
    model: z.string(),
    harness: z.string(),
    profile: z.string().optional(),
    profileVersion: z.string().optional().meta({
      description: 'A hash of all that the profile holds. Absent without a profile.',
    }),
    tellDeadline: z.literal(true).optional().meta({
      description: 'Set if the harness got to know how much time and budget it had left.',
    }),
    image: z.string(),
    network: z.string(),
    hosts: z.array(z.string()).optional().meta({
      description: 'The hosts that the harness could reach by name; in several steps, those of all of them.',
    }),
    testsHosts: z.array(z.string()).optional().meta({
      description: 'The hosts that the tests could reach by name; in several steps, those of all of them.',
    }),
    prompt: z.string(),
    verify: z.string().optional(),
  })
  .meta({ description: 'What was tried. All texts are expanded.' });

/**
 * Everything that a trial found, as the ledger keeps it and as `offsite export` writes it. A field is absent
 * if the trial did not reach its phase.
 */
export const TrialRecord = z.object({
  version: z.literal(recordVersion),
  subject: Subject.optional(),
  fingerprint: z.record(z.string(), z.string()).optional().meta({
    description:
      'What was asked, how it was graded and what worked on it: a hash of each part, or its name and version. Absent in older records.',
  }),
  definition: Sha256.optional().meta({
    description: 'The sha256 of all that was asked, with how it was to be graded. Absent in older records.',
  }),
  verdict: z.enum(['passed', 'failed', 'void']),
  cause: Cause.optional(),
  notRun: z.literal(true).optional().meta({
    description:
      "It was not run, because its variant's harness did not work or its batch's budget was spent; `cause` says so.",
  }),
  fromService: z.literal(true).optional().meta({
    description: 'Set if the ledger had lost the trial: this is what the record of the service shows of it.',
  }),
  startedAt: At,
  finishedAt: At,
  steady: SteadySpan.optional(),
  engine: z.string().optional().meta({
    description: 'The name of the engine that it ran on. Absent if the agent had only one.',
  }),
  sandboxId: z.string().optional().meta({ description: "The engine's id of the sandbox container." }),
  imageId: z.string().optional().meta({ description: 'The image that the sandbox was made from.' }),
  images: z.array(UsedImage).optional().meta({
    description: "The image that the sandbox's was made of, or those that the case's Dockerfile names.",
  }),
  workspace: z.string().optional().meta({
    description: "The workspace's folder in the sandbox. Absent in older records: /workspace.",
  }),
  user: z.string().optional().meta({
    description: 'The user of the commands in the sandbox. Absent for root, and in older records.',
  }),
  mappedImages: z
    .array(z.object({ name: z.string(), usedInstead: z.string() }))
    .optional()
    .meta({
      description: 'Images that the case names and that the configuration replaces by others.',
    }),
  source: z
    .object({ url: z.string(), ref: z.string().optional(), commit: z.string() })
    .optional()
    .meta({ description: 'The commit that the workspace began with. The URL is without credentials.' }),
  sandboxLacks: z.array(z.string()).optional().meta({
    description: 'Limits that the engine could not apply and that the configuration allows to be missing.',
  }),
  deviations: z.array(z.string()).optional().meta({
    description: 'What the case asks for and the harness did not get, one line each.',
  }),
  environment: z
    .array(EnvironmentStep)
    .optional()
    .meta({ description: 'Build, install and prepare, in order.' }),
  startUp: z.array(z.string()).optional().meta({
    description:
      'The program that the environment starts: in each sandbox, and again before tests in that of the agent.',
  }),
  services: z.array(ServiceRecord).optional().meta({
    description: 'The services of the case, until the trial was graded.',
  }),
  phases: z.array(
    z.object({
      name: PhaseName,
      step: z.string().optional().meta({ description: 'The step of the trial, if it has several.' }),
      startedAt: At,
      durationMs: Millis,
    }),
  ),
  testsConnections: z.array(HostConnection).optional().meta({
    description: 'Connections of the tests to the hosts that they may reach. Absent if they may reach none.',
  }),
  steps: z
    .array(StepResult)
    .optional()
    .meta({ description: 'The steps of a trial whose case has several, in order.' }),
  harness: HarnessEnding.optional(),
  harnessOutput: z.string().optional().meta({
    description: "The beginning and the end of the harness's own output, if it is a program.",
  }),
  trajectory: z.array(CommandEntry).optional().meta({
    description: 'The commands as the harness reported them.',
  }),
  harnessTellsCommands: z.boolean().optional().meta({
    description:
      'False for a harness that can be any program: `trajectory` then holds only the command that started it.',
  }),
  derivedTrajectory: z.array(CommandEntry).optional().meta({
    description:
      'The commands that its model traffic shows. For a harness that reports no commands, the only source.',
  }),
  commandsCut: z.literal(true).optional().meta({ description: 'There were more commands than are kept.' }),
  events: z.array(HarnessEvent).optional().meta({
    description: 'Other events that the harness reported, and what a simulated user said.',
  }),
  finalMessage: z.string().optional(),
  turns: z.number().optional().meta({ description: 'The number of messages that the harness got.' }),
  harnessVersion: z.string().optional().meta({ description: 'The version that the harness itself reports.' }),
  harnessCounts: z.object({ usage: Usage.optional(), commands: z.number().optional() }).optional().meta({
    description: "The harness's own counts, to compare with ours.",
  }),
  disagreements: z.array(z.string()).optional().meta({
    description: "Differences between the harness's counts and ours.",
  }),
  models: ModelAccount.optional(),
  replay: ReplayedTrial.optional(),
  filesChanged: z.array(z.string()).optional().meta({
    description: 'Workspace-relative paths. If there are very many, only the first ones.',
  }),
  filesChangedCount: z.number().optional().meta({
    description: 'How many files changed. If there are very many, how many of them were read.',
  }),
  changes: z.array(FileChange).optional().meta({
    description: 'What changed in those files. Absent if the workspace is too large to be read as a whole.',
  }),
  artifacts: z.array(Artifact).optional(),
  artifactsOmitted: z.array(z.string()).optional().meta({
    description: 'Files that matched but exceeded the limits on number and size.',
  }),
  artifactsOmittedCount: z.number().optional(),
  verifySteps: z
    .array(
      VerifyStep.extend({
        output: z.string(),
        outputTruncated: z.boolean(),
        unreadable: z.literal(true).optional().meta({
          description: 'Bash cannot read the command, and nothing of it ran.',
        }),
        startedAt: At.optional(),
        durationMs: Millis.optional(),
      }),
    )
    .optional(),
  verifiedIn: z.enum(['fresh', 'same']).optional().meta({
    description: "Whether verify ran in a fresh sandbox or in the harness's own.",
  }),
  validatedIn: z.enum(['fresh', 'same']).optional().meta({ description: 'The same for the validator.' }),
  systemChanges: z
    .object({ kept: PathList, unexpected: PathList, caches: PathList.optional() })
    .optional()
    .meta({
      description:
        'What changed outside the workspace in the sandbox that verify ran in. `caches` are unexpected changes in ' +
        'folders of temporary files, logs and caches, which are counted apart.',
    }),
  validations: z.array(Validation).optional().meta({
    description: 'The full records. A report may carry less.',
  }),
  judgments: z.array(Judgment).optional(),
  left: LeftState.optional(),
  regrade: Regrade.optional(),
  modelUnmeasured: z.boolean().meta({
    description: 'Whether the sandbox could reach a model without its traffic passing the gateway.',
  }),
});

export type TrialRecord = z.infer<typeof TrialRecord>;

/** The record of a trial that did nothing, and why. */
export function voidRecord(now: number, cause: Cause, also: Partial<TrialRecord>): TrialRecord {
  const times = { startedAt: now, finishedAt: now, phases: [] };
  return { version: recordVersion, verdict: 'void', cause, ...times, modelUnmeasured: false, ...also };
}

/** The phases of a trial, in order. */
export type PhaseTiming = TrialRecord['phases'][number];
export type StepResult = z.infer<typeof StepResult>;
