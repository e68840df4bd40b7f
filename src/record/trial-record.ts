import { z } from 'zod';
import { Artifact, TrajectoryEntry, Usage, VerifyStep } from '../contract/report.ts';
import { Judgment, Validation } from '../contract/validation.ts';
import { ReplayedExchange } from './replayed-exchange.ts';

/** The version of the record that this program writes. Add an upgrade in `upgrades.ts` when you raise it. */
export const recordVersion = 2;

const Millis = z.number().meta({ description: 'Milliseconds.' });
const At = z.number().meta({ description: 'Epoch milliseconds.' });
const Sha256 = z.string().meta({ description: 'The name of a blob: 64 lower-case hexadecimal digits.' });

const PhaseName = z.enum(['sandbox', 'harness', 'collect', 'verify', 'validate']).meta({
  description: 'The phases of a trial, in order.',
});

const Cause = z
  .object({
    kind: z.enum(['task', 'agent', 'harness', 'model', 'infrastructure', 'grading', 'replay']).meta({
      description:
        "Who caused it. `task`: the case's own scripts. `harness`: a CLI that failed before it asked any model. " +
        '`replay`: a request that is not recorded.',
    }),
    phase: z.union([PhaseName, z.enum(['build', 'install', 'prepare'])]),
    message: z.string(),
    output: z.string().optional().meta({ description: 'The output, if it adds to the message.' }),
  })
  .meta({ description: 'Why a trial has no verdict, or what went wrong before it got one.' });

const UsedImage = z.object({
  name: z.string(),
  id: z.string().meta({ description: "The engine's id of the image." }),
  platform: z.string().meta({ description: 'What its programs are made for, such as linux/amd64.' }),
  digest: z.string().optional().meta({
    description: "Its digest in the registry that it came from. Absent for an engine's own image.",
  }),
});

const EnvironmentStep = z
  .object({
    phase: z.enum(['build', 'install', 'prepare']),
    description: z.string(),
    image: z.string().optional().meta({
      description: 'The id of the image that the step gave. Absent if it ran in the sandbox itself.',
    }),
    volume: z.string().optional().meta({
      description: 'The name of the volume that the step filled, in place of an image.',
    }),
    startedAt: At.optional(),
    durationMs: Millis.optional(),
    exitCode: z.number().optional(),
    log: Sha256.optional().meta({
      description:
        'The blob with what the step printed. Absent if another agent ran it, or it printed nothing.',
    }),
  })
  .meta({
    description: 'A step of the environment, which trials share: it may have run long before this trial.',
  });

const HarnessEnding = z.discriminatedUnion('ended', [
  z.object({ ended: z.literal('exited'), exitCode: z.number() }),
  z.object({
    ended: z.enum(['agent-failed', 'model-failed', 'runner-broke']),
    message: z.string(),
    exitCode: z.number().optional(),
  }),
  z.object({ ended: z.literal('timed-out'), afterMs: Millis }),
  z.object({ ended: z.literal('stopped'), message: z.string() }),
  z.object({ ended: z.enum(['out-of-disk', 'out-of-memory']) }),
]);

const HarnessEvent = z.discriminatedUnion('kind', [
  z.object({ kind: z.enum(['user', 'message', 'note']), at: At, text: z.string() }),
  z.object({
    kind: z.literal('tool'),
    at: At,
    finishedAt: At.optional(),
    name: z.string(),
    input: z.unknown().optional(),
    output: z.string().optional(),
    failed: z.boolean().optional(),
  }),
]);

const ModelRole = z.enum(['agent', 'user', 'judge']);

const ModelExchange = z
  .object({
    role: ModelRole,
    model: z.string(),
    wire: z.string(),
    path: z.string(),
    streamed: z.boolean(),
    startedAt: At,
    firstByteAt: At.optional(),
    finishedAt: At,
    status: z.number().optional().meta({
      description: 'The status that the sandbox received. Absent if the connection ended first.',
    }),
    failedTries: z.array(z.object({ at: At, reason: z.string() })),
    failure: z.string().optional().meta({
      description:
        'Why it did not succeed: aborted by the client, cut by the upstream, refused by the gateway.',
    }),
    usage: Usage,
    answeredBy: z.string().optional(),
    requestBytes: z.number(),
    responseBytes: z.number(),
    requestBody: Sha256.optional().meta({ description: 'With `record: full`.' }),
    responseBody: Sha256.optional().meta({ description: 'With `record: full`.' }),
    translation: z
      .object({
        from: z.string().meta({ description: "The harness's wire." }),
        losses: z.array(z.object({ path: z.string(), kind: z.string(), times: z.number() })).meta({
          description: 'What one of the two wires cannot carry, and was left out.',
        }),
        estimated: z.literal(true).optional().meta({ description: 'A count of tokens that is an estimate.' }),
      })
      .optional()
      .meta({
        description:
          'If the harness spoke another wire than the model. All else here is what the model got and gave.',
      }),
    replayed: ReplayedExchange.optional(),
  })
  .meta({ description: 'One request to a model.' });

const HostConnection = z.object({
  host: z.string(),
  port: z.number(),
  startedAt: At,
  finishedAt: At,
  sentBytes: z.number(),
  receivedBytes: z.number(),
  failure: z.string().optional(),
});

const ModelAccount = z.object({
  exchanges: z.array(ModelExchange).meta({ description: 'In the order they began.' }),
  connections: z.array(HostConnection),
  usage: z.array(
    z.object({
      role: ModelRole,
      model: z.string(),
      answeredBy: z.string().optional(),
      requests: z.number(),
      replayed: z
        .number()
        .optional()
        .meta({ description: 'Requests that got a recorded answer. Absent if there were none.' }),
      usage: Usage,
      pricesOf: z.string().optional().meta({ description: 'The date of the prices behind `usage.costUsd`.' }),
    }),
  ),
  modelMs: Millis.meta({ description: "Milliseconds with at least one request of the agent's in flight." }),
  failure: z.string().optional(),
  agent: z.object({ acted: z.boolean(), modelFailure: z.string().optional() }),
});

const FileVersion = z.object({
  type: z.string().meta({ examples: ['file', 'folder', 'symlink'] }),
  mode: z.number(),
  byteSize: z.number().optional(),
  content: Sha256.optional().meta({ description: 'The blob with the text. Absent if it was not kept.' }),
  linkTarget: z.string().optional(),
});

const FileChange = z
  .object({
    path: z.string(),
    kind: z.enum(['added', 'modified', 'deleted']),
    before: FileVersion.optional(),
    after: FileVersion.optional(),
    omitted: z.enum(['binary', 'large', 'room']).optional().meta({
      description:
        'Why a content was not kept: it is not text, it is too large, or the contents kept for this trial are.',
    }),
  })
  .meta({ description: 'What the agent did to one path of the workspace.' });

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

const PathList = z.object({ paths: z.array(z.string()), count: z.number() });

const LeftState = z
  .discriminatedUnion('kind', [
    z.object({ kind: z.literal('untouched') }),
    z.object({
      kind: z.literal('archive'),
      sha256: Sha256.meta({ description: 'The name of the file in the folder for workspaces.' }),
      byteSize: z.number().meta({ description: 'Bytes of the archive.' }),
      storedSize: z.number().meta({ description: 'Bytes of the file, which is compressed.' }),
    }),
    z.object({
      kind: z.literal('image'),
      imageId: z.string().meta({ description: "The engine's id of the image of the whole sandbox." }),
      storedSize: z.number().meta({ description: 'Bytes that were written in the sandbox.' }),
    }),
    z.object({ kind: z.literal('not-kept'), why: z.string() }),
  ])
  .meta({
    description:
      'What was kept of the state that the agent left, to grade it again. It may have been removed since.',
  });

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
      description: 'Set if the harness was told how much time and budget it had left.',
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

const ServiceRecord = z
  .object({
    name: z.string(),
    image: z.string().meta({ description: 'The name of the image, or what it was built from.' }),
    imageId: z.string(),
    startedAt: At.optional(),
    healthyAfterMs: Millis.optional().meta({ description: 'Absent without a health check.' }),
    exitCode: z.number().optional().meta({ description: 'If it ended by itself.' }),
    outOfDisk: z.literal(true).optional().meta({
      description: 'It was ended because it wrote more than it may.',
    }),
    log: Sha256.optional().meta({
      description: 'The blob with what it printed; also an artifact. Absent if it printed nothing.',
    }),
    logTruncated: z.literal(true).optional(),
  })
  .meta({ description: 'A container that ran beside the sandbox.' });

const ReplayedTrial = z
  .object({
    of: z.string().meta({ description: 'The batch, the trial or the cassette that was recorded.' }),
    answered: z.number().meta({ description: 'Requests that got a recorded answer.' }),
    forkedAt: z.number().optional().meta({
      description: 'Of a fork: how many requests of the trial that it was forked from are replayed.',
    }),
    fromHarness: z.string().optional().meta({
      description: 'Of a fork with `--harness`: the harness of the trial that it was forked from.',
    }),
    changed: z.number().optional().meta({
      description: "Of these, those in which the harness's own texts, its tools or its options had changed.",
    }),
    live: z.number().optional().meta({ description: 'Requests that a model answered. Absent for none.' }),
  })
  .meta({ description: 'Set if recorded answers took the place of a model. It is not a live result.' });

/**
 * Everything that a trial found, as the ledger keeps it and as `offsite export` writes it. A field is absent
 * if the trial did not reach its phase.
 */
export const TrialRecord = z.object({
  version: z.literal(recordVersion),
  subject: Subject.optional(),
  verdict: z.enum(['passed', 'failed', 'void']),
  cause: Cause.optional(),
  notRun: z.literal(true).optional().meta({
    description: "It was not run because its variant's harness did not work; `cause` says so.",
  }),
  startedAt: At,
  finishedAt: At,
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
  trajectory: z.array(TrajectoryEntry).optional().meta({
    description: 'The commands as the harness reported them.',
  }),
  harnessTellsCommands: z.boolean().optional().meta({
    description:
      'False for a harness that can be any program: `trajectory` then holds only the command that started it.',
  }),
  derivedTrajectory: z.array(TrajectoryEntry).optional().meta({
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
        startedAt: At.optional(),
        durationMs: Millis.optional(),
      }),
    )
    .optional(),
  verifiedIn: z.enum(['fresh', 'same']).optional().meta({
    description: "Whether verify ran in a fresh sandbox or in the harness's own.",
  }),
  validatedIn: z.enum(['fresh', 'same']).optional().meta({ description: 'The same for the validator.' }),
  systemChanges: z.object({ kept: PathList, unexpected: PathList }).optional().meta({
    description: 'What changed outside the workspace in the sandbox that verify ran in.',
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
/** A record before it is stored. */
export type TrialResult = Omit<TrialRecord, 'version'>;
/** The record as it is stored. */
export function recordOf(result: TrialResult): TrialRecord {
  return { version: recordVersion, ...result };
}

export type Cause = z.infer<typeof Cause>;
/** The phases of a trial, in order. */
export type PhaseName = z.infer<typeof PhaseName>;
export type PhaseTiming = TrialRecord['phases'][number];
export type HarnessEnding = z.infer<typeof HarnessEnding>;
export type HarnessEvent = z.infer<typeof HarnessEvent>;
export type UsedImage = z.infer<typeof UsedImage>;
export type ServiceRecord = z.infer<typeof ServiceRecord>;
export type EnvironmentStep = z.infer<typeof EnvironmentStep>;
export type StepResult = z.infer<typeof StepResult>;
export type FileChange = z.infer<typeof FileChange>;
export type LeftState = z.infer<typeof LeftState>;
export type FileVersion = z.infer<typeof FileVersion>;
export type HostConnection = z.infer<typeof HostConnection>;
export type ModelExchange = z.infer<typeof ModelExchange>;
