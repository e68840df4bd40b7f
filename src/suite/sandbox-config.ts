import { z } from 'zod';
import { ByteSize, Duration, Label, MemorySize } from './quantities.ts';

/** Where trials run, and with which limits: `sandboxes` of `offsite.yaml`. */
export const SandboxConfig = z.strictObject({
  image: z
    .string()
    .min(1)
    .default('offsite/base')
    .meta({ description: 'The image of the sandbox, on the engine or in a registry.' }),
  harnessImage: z
    .string()
    .min(1)
    .optional()
    .meta({
      description:
        'The image in which harnesses are installed, for sandboxes of any image. It has npm and a C library ' +
        'like that of the images they run in. Default: offsite/base.',
    }),
  network: z
    .enum(['none', 'model', 'allowlist', 'open'])
    .default('model')
    .meta({
      description:
        "What the harness can reach. none: nothing. model: the variant's model. " +
        'allowlist: the model and `hosts`. open: everything. Install and prepare always have the network.',
    }),
  hosts: z
    .array(z.string().min(1))
    .default([])
    .meta({ description: 'For network allowlist: registry.example, *.example:443.' }),
  testsNetwork: z
    .boolean()
    .optional()
    .meta({
      description:
        'Whether tests that do not say what they reach may reach `hosts` too, with network allowlist. ' +
        'Default: no.',
    }),
  security: z.enum(['compatible', 'strict']).default('compatible').meta({
    description:
      'compatible: root with the five capabilities that package managers need. strict: no capability, and a user that is not root.',
  }),
  memory: MemorySize.default(2 * 1024 ** 3).meta({ description: 'The most memory, with swap.' }),
  cpus: z.number().positive().default(1).meta({ description: 'How many processors it may use.' }),
  disk: ByteSize.default(10 * 1024 ** 3).meta({ description: 'How much a trial may write to its disk.' }),
  user: z.string().min(1).optional().meta({
    description:
      'Name or id of the user that runs everything. security: strict requires a user that is not root.',
  }),
  pids: z.int().min(16).default(512).meta({ description: 'The maximum number of processes and threads.' }),
  nofile: z
    .int()
    .min(64)
    .default(16_384)
    .meta({ description: 'The maximum number of open files of one process.' }),
  runtime: z
    .string()
    .min(1)
    .optional()
    .meta({ description: "An OCI runtime that the engine knows. Default: the engine's own." }),
  needs: z
    .array(Label)
    .optional()
    .meta({
      description:
        'What the machine must have, by its `labels`: gpu. Each machine has its architecture as a label too: ' +
        'amd64 or arm64.',
    }),
  seccomp: z
    .enum(['required', 'if-available'])
    .default('required')
    .meta({
      description:
        "Whether to refuse an engine that cannot apply Offsite's filter of system calls, " +
        'or to run without the filter. Results say so if the filter was missing.',
    }),
  remoteAdd: z
    .enum(['refuse', 'allow'])
    .default('refuse')
    .meta({
      description:
        "Whether ADD of a Dockerfile may name an address or a git repository. The engine fetches it on its machine's " +
        'own network, where also loopback and private addresses answer, and follows redirects.',
    }),
  passEnv: z.array(z.string().min(1)).default([]).meta({
    description: "Names of the host's environment variables that the sandbox may see. Default: none.",
  }),
  timeouts: z
    .strictObject({
      install: Duration.default(900_000).meta({ description: 'For the `install` of a profile.' }),
      build: Duration.default(1_800_000).meta({ description: 'For the build of a Dockerfile.' }),
      prepare: Duration.default(600_000).meta({ description: 'For the `prepare` of a case.' }),
      harness: Duration.default(1_800_000).meta({ description: "For the harness's work in one trial." }),
      verify: Duration.default(600_000).meta({ description: 'For all verify steps together.' }),
      validator: Duration.default(300_000).meta({ description: 'For the validator.' }),
    })
    .prefault({})
    .meta({ description: 'How long each phase may take.' }),
});
export type SandboxConfig = z.infer<typeof SandboxConfig>;
