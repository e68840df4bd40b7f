import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { type ConfigSearch, configPlace } from './config-place.ts';
import { type Budgets, withDefaultBudgets } from './default-budgets.ts';
import { EngineList, engineListIssue } from './engines-config.ts';
import { FleetConfig } from './fleet-config.ts';
import { Label } from './labels.ts';
import { McpServer } from './mcp-server.ts';
import { Budget, ModelConfig } from './model-config.ts';
import { ByteSize, Duration, MemorySize } from './quantities.ts';
import { Text } from './text-source.ts';
import { readYamlFile, type YamlFile } from './yaml-file.ts';

/**
 * The schema of `offsite.yaml`: the profiles, sandboxes and models of this machine, and how it reaches the
 * service and the engine.
 */

const ProfileConfig = z.strictObject({
  install: Text.optional().meta({
    description: 'A script that runs once, with network. Its result is kept as a snapshot.',
  }),
  run: Text.optional().meta({
    description: 'For the harnesses command and acp: the script that is the agent.',
  }),
  stream: z
    .string()
    .min(1)
    .optional()
    .meta({
      description:
        'For the command harness: what the run script prints on stdout. jsonl, or the name of a harness ' +
        'whose stream it prints: claude-code, codex, and others. Default: nothing that is read.',
    }),
  trajectory: z
    .enum(['wire', 'none'])
    .optional()
    .meta({
      description:
        'For the command harness: where the commands of a trial come from. wire: from the model traffic. ' +
        'none: they are not known. Default: the stream; without one, the model traffic if it shows any, ' +
        'else the commands of the run script.',
    }),
  version: z
    .string()
    .regex(/^[\w.+-]+$/, 'expected a version such as 1.2.3')
    .optional()
    .meta({ description: "The version of the harness's CLI to use instead of the pinned one." }),
  args: z
    .array(z.string())
    .optional()
    .meta({ description: "Arguments to add to the command line of the harness's CLI." }),
  env: z
    .record(z.string(), z.string())
    .optional()
    .meta({ description: 'Environment variables of the harness.' }),
  mcpServers: z
    .record(z.string().regex(/^[\w-]+$/, 'expected a name of letters, digits, _ and -'), McpServer)
    .optional()
    .meta({ description: 'Tool servers of the Model Context Protocol, by name.' }),
  maxTurns: z
    .int()
    .min(1)
    .optional()
    .meta({ description: 'The maximum number of turns of model and tools.' }),
  tellDeadline: z
    .boolean()
    .optional()
    .meta({
      description:
        'Whether the harness is told how much time and budget it has left: in its environment, and for bash in ' +
        'the conversation. Default: false.',
    }),
  folders: z
    .record(z.string().startsWith('/', 'expected an absolute path in the sandbox'), z.string())
    .optional()
    .meta({
      description: 'Absolute path in the sandbox -> folder beside this file, such as skills or instructions.',
    }),
  files: z
    .record(z.string().startsWith('/', 'expected an absolute path in the sandbox'), z.string())
    .optional()
    .meta({ description: 'Absolute path in the sandbox -> file beside this file.' }),
});

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

const ConnectionNames = z.record(z.string(), z.string()).default({});

const DaemonConfig = z.strictObject({
  suites: z
    .array(z.string().min(1))
    .default([])
    .meta({ description: 'Ids of suites at the service. The daemon polls all of their cases for runs.' }),
  cases: z.array(z.string().min(1)).default([]).meta({ description: 'Ids of further cases to poll.' }),
  poll: z
    .strictObject({
      min: Duration.default(5_000).meta({ description: 'The shortest time between two polls.' }),
      max: Duration.default(60_000).meta({ description: 'The longest time between two polls.' }),
    })
    .prefault({})
    .refine(({ min, max }) => min > 0 && min <= max, 'expected min to be more than 0 and no more than max')
    .meta({
      description:
        'The time between two polls of one poll target: min while runs arrive, up to max while none do. ' +
        'It varies at random by a quarter.',
    }),
  profiles: z
    .record(z.string(), z.string())
    .default({})
    .meta({ description: 'Harness -> profile, for runs whose record names no profile.' }),
  judges: z
    .array(z.string().min(1))
    .default([])
    .meta({ description: 'Models that the validators of the daemon’s runs may use.' }),
  listen: z
    .string()
    .regex(/^(.+:)?\d{1,5}$/, 'expected an address such as 127.0.0.1:9320')
    .optional()
    .meta({ description: 'The address that serves /healthz, /readyz, /metrics and /status. Default: none.' }),
});
export type DaemonConfig = z.infer<typeof DaemonConfig>;

export const ConfigFile = z
  .strictObject({
    service: z
      .strictObject({
        url: z.url().meta({ description: 'The address of the service.' }),
        apiKeyEnv: z
          .string()
          .default('OFFSITE_API_KEY')
          .meta({ description: 'The name of the environment variable that holds the key.' }),
        insecureHttp: z
          .boolean()
          .default(false)
          .meta({ description: 'Allows plain http to a service that is not on this machine.' }),
      })
      .optional()
      .meta({ description: 'The Eval Service that gets the results. Default: the embedded one.' }),
    engine: z
      .strictObject({
        host: z.string().min(1).meta({
          description: 'The address of the engine, such as unix:///var/run/docker.sock or ssh://host.',
        }),
      })
      .optional()
      .meta({ description: 'The container engine. Default: the one that the docker CLI would use.' }),
    engines: EngineList,
    labels: z
      .array(Label)
      .default([])
      .meta({ description: 'What this machine has that a sandbox may need: gpu, big-disk.' }),
    dataFolder: z
      .string()
      .min(1)
      .optional()
      .meta({ description: 'The folder of results. Default: $OFFSITE_HOME, or ~/.local/share/offsite.' }),
    caBundle: z
      .string()
      .min(1)
      .optional()
      .meta({ description: 'PEM file of certificates to trust in addition to the usual ones.' }),
    allowOutside: z
      .array(z.string().min(1))
      .default([])
      .meta({
        description:
          "Files and folders outside a suite's folder that suites may read, relative to this file: with `.`, a " +
          'suite in evals/ may use the repository that it is in.',
      }),
    concurrency: z.int().min(1).optional().meta({
      description: "How many trials run at a time. Default: as many as the engine's cores and memory allow.",
    }),
    lease: Duration.default(90_000)
      .refine((ms) => ms >= 1_000 && ms <= 3_600_000, 'expected a duration from 1s to 1h')
      .meta({
        description:
          'How long a service that has claims keeps a running trial for this agent without hearing from it. ' +
          'The agent renews that all the time. After a crash, other agents may run the trial when it is over.',
      }),
    daemon: DaemonConfig.prefault({}).meta({ description: 'Settings of `offsite daemon`.' }),
    fleet: FleetConfig.prefault({}).meta({ description: 'Settings of `offsite fleet`.' }),
    profiles: z
      .record(z.string(), ProfileConfig)
      .default({})
      .meta({ description: 'Profiles by name: what a harness is given, and how it is started.' }),
    sandboxes: z
      .record(z.string(), SandboxConfig)
      .default({})
      .meta({ description: 'Sandboxes by name. `local` is there without an entry.' }),
    models: z.record(z.string().min(1), ModelConfig).default({}).meta({ description: 'Models by name.' }),
    budgets: z
      .strictObject({
        trial: Budget.prefault({}).meta({ description: 'What the models of one trial may use together.' }),
        judges: Budget.optional().meta({
          description: 'What the judges of one trial may use, counted separately. Default: as `trial`.',
        }),
        batch: Budget.prefault({}).meta({ description: 'What all trials of a batch may use together.' }),
      })
      .prefault({})
      .meta({
        description: 'Limits for the models of one trial together, and of all trials of a batch together.',
      }),
    images: z.record(z.string().min(1), z.string().min(1)).default({}).meta({
      description: 'Image that a suite names -> image to use instead. Results say so.',
    }),
    pull: z
      .enum(['never', 'missing', 'always'])
      .default('missing')
      .meta({
        description:
          'Whether images that a case or a sandbox names are pulled. missing: those that the engine does not ' +
          'have. always: all, so that a name that moved is noticed.',
      }),
    snapshots: z
      .strictObject({
        budget: ByteSize.default(20 * 1024 ** 3).meta({ description: 'The most disk space.' }),
      })
      .prefault({})
      .meta({
        description: 'Disk space for kept snapshots. The least recently used ones are removed first.',
      }),
    workspaces: z
      .strictObject({
        budget: z
          .union([z.literal(0), ByteSize])
          .default(10 * 1024 ** 3)
          .meta({ description: 'The most disk space. 0: nothing is kept.' }),
      })
      .prefault({})
      .meta({
        description:
          'Disk space for what trials left, which `offsite regrade` grades again. The oldest are removed ' +
          'first. 0: nothing is kept.',
      }),
    connections: z
      .strictObject({
        harness: ConnectionNames.meta({ description: 'Name of a harness -> its id at the service.' }),
        sandbox: ConnectionNames.meta({ description: 'Name of a sandbox -> its id at the service.' }),
      })
      .prefault({})
      .meta({
        description: "Names of harnesses and sandboxes in this file -> the platform's connection ids.",
      }),
  })
  .superRefine((config, context) => {
    const issue = config.engine && config.engines ? 'use either engine or engines' : engineListIssue(config);
    if (issue !== undefined) context.addIssue({ code: 'custom', path: ['engines'], message: issue });
  })
  .meta({ title: 'Offsite configuration' });

/** A file may have only comments. */
const ConfigOrNothing = z.preprocess((value) => value ?? {}, ConfigFile);

export type Config = Omit<z.infer<typeof ConfigFile>, 'budgets'> & {
  budgets: Budgets;
  /** The file that was read. Undefined if there is none and all values are defaults. */
  file: string | undefined;
  /** Reports a problem at a position in that file. */
  issue?: YamlFile<unknown>['issue'];
};

/**
 * Finds and reads `offsite.yaml`. Reads the named file, or the one in `OFFSITE_CONFIG`. If neither is given,
 * it reads the first that exists beside the suite, in the working folder, or in the user's config folder.
 * Files are not merged. Throws an `input` error if a named file does not exist.
 */
export function loadConfig(options: ConfigSearch): Config {
  const file = configPlace(options);
  if (file === undefined) return { ...ConfigFile.parse({}), file };
  const { value: config, issue } = readYamlFile(file, ConfigOrNothing);
  const absolute = (path: string | undefined) =>
    path === undefined ? undefined : resolve(dirname(file), path);
  const models = Object.fromEntries(
    Object.entries(config.models).map(([name, model]) => [
      name,
      'scripted' in model
        ? { ...model, scripted: resolve(dirname(file), model.scripted) }
        : 'replay' in model
          ? { ...model, replay: resolve(dirname(file), model.replay) }
          : model,
    ]),
  );
  const { storage, tls } = config.fleet;
  return {
    ...config,
    models,
    budgets: withDefaultBudgets(config.budgets, models),
    fleet: {
      ...config.fleet,
      ...(storage && 'folder' in storage && { storage: { folder: resolve(dirname(file), storage.folder) } }),
      ...(typeof tls === 'object' && {
        tls: Object.fromEntries(Object.entries(tls).map(([name, path]) => [name, absolute(path)])),
      }),
    },
    engines: config.engines?.map((engine) =>
      typeof engine === 'string' ? engine : { ...engine, certificates: absolute(engine.certificates) },
    ),
    allowOutside: config.allowOutside.map((path) => resolve(dirname(file), path)),
    caBundle: absolute(config.caBundle),
    dataFolder: absolute(config.dataFolder),
    file,
    issue,
  };
}
