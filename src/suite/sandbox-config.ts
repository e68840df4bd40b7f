import { z } from 'zod';
import { ByteSize, Duration, Label, MemorySize } from './quantities.ts';
import { NonEmpty } from './text-source.ts';

/** Where trials run, and with which limits: `sandboxes` of `offsite.yaml`. */
export const SandboxConfig = z.strictObject({
  image: NonEmpty.default('offsite/base').describe(
    'The image of the sandbox, on the engine or in a registry.',
  ),
  harnessImage: NonEmpty.optional().describe(
    'The image in which harnesses are installed, for sandboxes of any image. It has npm and a C library ' +
      'like that of the images they run in. Default: offsite/base.',
  ),
  network: z
    .enum(['none', 'model', 'allowlist', 'open'])
    .default('model')
    .describe(
      "What the harness can reach. none: nothing. model: the variant's model. " +
        'allowlist: the model and `hosts`. open: everything. Install and prepare always have the network.',
    ),
  hosts: z.array(NonEmpty).default([]).describe('For network allowlist: registry.example, *.example:443.'),
  testsNetwork: z
    .boolean()
    .optional()
    .describe(
      'Whether tests that do not say what they reach may reach `hosts` too, with network allowlist. ' +
        'Default: no.',
    ),
  security: z
    .enum(['compatible', 'strict'])
    .default('compatible')
    .describe(
      'compatible: root with the five capabilities that package managers need. strict: no capability, and a user that is not root.',
    ),
  memory: MemorySize.default(2 * 1024 ** 3).describe('The most memory, with swap.'),
  cpus: z.number().positive().default(1).describe('How many processors it may use.'),
  disk: ByteSize.default(10 * 1024 ** 3).describe('How much a trial may write to its disk.'),
  user: NonEmpty.optional().describe(
    'Name or id of the user that runs everything. security: strict requires a user that is not root.',
  ),
  pids: z.int().min(16).default(512).describe('The maximum number of processes and threads.'),
  nofile: z.int().min(64).default(16_384).describe('The maximum number of open files of one process.'),
  runtime: NonEmpty.optional().describe("An OCI runtime that the engine knows. Default: the engine's own."),
  needs: z
    .array(Label)
    .optional()
    .describe(
      'What the machine must have, by its `labels`: gpu. Each machine has its architecture as a label too: ' +
        'amd64 or arm64.',
    ),
  seccomp: z
    .enum(['required', 'if-available'])
    .default('required')
    .describe(
      "Whether to refuse an engine that cannot apply Offsite's filter of system calls, " +
        'or to run without the filter. Results say so if the filter was missing.',
    ),
  remoteAdd: z
    .enum(['refuse', 'allow'])
    .default('refuse')
    .describe(
      "Whether ADD of a Dockerfile may name an address or a git repository. The engine fetches it on its machine's " +
        'own network, where also loopback and private addresses answer, and follows redirects.',
    ),
  passEnv: z
    .array(NonEmpty)
    .default([])
    .describe("Names of the host's environment variables that the sandbox may see. Default: none."),
  timeouts: z
    .strictObject({
      install: Duration.default(900_000).describe('For the `install` of a profile.'),
      build: Duration.default(1_800_000).describe('For the build of a Dockerfile.'),
      prepare: Duration.default(600_000).describe('For the `prepare` of a case.'),
      harness: Duration.default(1_800_000).describe("For the harness's work in one trial."),
      verify: Duration.default(600_000).describe('For all verify steps together.'),
      validator: Duration.default(300_000).describe('For the validator.'),
    })
    .prefault({})
    .describe('How long each phase may take.'),
});
export type SandboxConfig = z.infer<typeof SandboxConfig>;
