import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { OffsiteError } from '../offsite-error.ts';
import { Budget, ModelConfig } from './model-config.ts';
import { ByteSize, Duration } from './quantities.ts';
import { Text } from './suite-file.ts';
import { readYamlFile, type YamlFile } from './yaml-file.ts';

/**
 * `offsite.yaml`: what this machine knows by name (profiles, sandboxes), and how it reaches service and
 * engine.
 */

/** A tool server for the harness: a program in the sandbox, or an address that the sandbox can reach. */
export const McpServer = z.union(
  [
    z.strictObject({
      command: z.string().min(1),
      args: z.array(z.string()).default([]),
      env: z.record(z.string(), z.string()).default({}),
    }),
    z.strictObject({ url: z.url() }),
  ],
  { error: 'expected {command, args, env} or {url}' },
);
export type McpServer = z.infer<typeof McpServer>;

const ProfileConfig = z.strictObject({
  install: Text.optional().meta({
    description: 'A script that runs once, with network; its result is a snapshot.',
  }),
  run: Text.optional().meta({ description: 'For the command harness: the script that is the agent.' }),
  version: z
    .string()
    .regex(/^[\w.+-]+$/, 'expected a version such as 1.2.3')
    .optional()
    .meta({ description: "Of the harness's CLI, in place of the one that is pinned." }),
  args: z
    .array(z.string())
    .optional()
    .meta({ description: "Added to the command line of the harness's CLI." }),
  env: z.record(z.string(), z.string()).optional(),
  mcpServers: z.record(z.string().regex(/^[\w-]+$/), McpServer).optional(),
  maxTurns: z.int().min(1).optional().meta({ description: 'Turns of model and tools the harness may take.' }),
  folders: z
    .record(z.string().startsWith('/', 'expected an absolute path in the sandbox'), z.string())
    .optional()
    .meta({
      description: 'Absolute path in the sandbox -> folder beside this one, such as skills or instructions.',
    }),
  files: z
    .record(z.string().startsWith('/', 'expected an absolute path in the sandbox'), z.string())
    .optional()
    .meta({ description: 'Absolute path in the sandbox -> file beside this one.' }),
});

export const SandboxConfig = z.strictObject({
  image: z.string().min(1).default('offsite/base'),
  network: z.enum(['none', 'model', 'allowlist', 'open']).default('model').meta({
    description:
      "What the harness reaches: nothing; the variant's model; that and the named hosts; everything. Install and prepare always have the network.",
  }),
  hosts: z
    .array(z.string().min(1))
    .default([])
    .meta({ description: 'For network allowlist: registry.example, *.example:443.' }),
  security: z.enum(['compatible', 'strict']).default('compatible'),
  memory: ByteSize.default(2 * 1024 ** 3),
  cpus: z.number().positive().default(1),
  disk: ByteSize.default(10 * 1024 ** 3).meta({ description: 'What a trial may write to its disk.' }),
  user: z.string().min(1).optional().meta({
    description:
      'Name or id of the user that everything runs as. The strict profile needs one that is not root.',
  }),
  pids: z.int().min(16).default(512).meta({ description: 'Processes and threads.' }),
  nofile: z.int().min(64).default(16_384).meta({ description: 'Open files of one process.' }),
  runtime: z.string().min(1).optional(),
  seccomp: z.enum(['required', 'if-available']).default('required').meta({
    description:
      "Whether an engine that cannot hold it to Offsite's filter of system calls is refused, or used without; results then say so.",
  }),
  passEnv: z.array(z.string().min(1)).default([]).meta({
    description: "Names of the host's environment variables that the sandbox may see. None by default.",
  }),
  timeouts: z
    .strictObject({
      install: Duration.default(900_000),
      prepare: Duration.default(600_000),
      harness: Duration.default(1_800_000),
      verify: Duration.default(600_000),
      validator: Duration.default(300_000),
    })
    .prefault({}),
});
export type SandboxConfig = z.infer<typeof SandboxConfig>;

const ConnectionNames = z.record(z.string(), z.string()).default({});

const DaemonConfig = z.strictObject({
  suites: z
    .array(z.string().min(1))
    .default([])
    .meta({ description: 'Ids of suites at the service, whose every case is looked at for runs.' }),
  cases: z.array(z.string().min(1)).default([]).meta({ description: 'Ids of cases besides those.' }),
  poll: z
    .strictObject({ min: Duration.default(5_000), max: Duration.default(60_000) })
    .prefault({})
    .refine(({ min, max }) => min > 0 && min <= max, 'expected min to be more than 0 and no more than max')
    .meta({
      description:
        'Between two looks at one place: the least while runs come in, the most while none do. Spread by a quarter.',
    }),
  profiles: z
    .record(z.string(), z.string())
    .default({})
    .meta({ description: 'Harness -> profile, for runs whose record names none.' }),
  judges: z
    .array(z.string().min(1))
    .default([])
    .meta({ description: 'Models that the validators of found runs may ask.' }),
  listen: z
    .string()
    .regex(/^(.+:)?\d{1,5}$/, 'expected an address such as 127.0.0.1:9320')
    .optional()
    .meta({ description: 'Where it answers /healthz, /readyz, /metrics and /status; nowhere unless given.' }),
});
export type DaemonConfig = z.infer<typeof DaemonConfig>;

export const ConfigFile = z
  .strictObject({
    service: z
      .strictObject({
        url: z.url(),
        apiKeyEnv: z
          .string()
          .default('OFFSITE_API_KEY')
          .meta({ description: 'The name of the environment variable that holds the key.' }),
        insecureHttp: z.boolean().default(false),
      })
      .optional(),
    engine: z.strictObject({ host: z.string().min(1) }).optional(),
    dataFolder: z.string().min(1).optional(),
    caBundle: z
      .string()
      .min(1)
      .optional()
      .meta({ description: 'PEM file of certificates to trust besides the usual.' }),
    concurrency: z.int().min(1).optional(),
    daemon: DaemonConfig.prefault({}).meta({ description: 'Where `offsite daemon` looks for runs.' }),
    profiles: z.record(z.string(), ProfileConfig).default({}),
    sandboxes: z.record(z.string(), SandboxConfig).default({}),
    models: z.record(z.string().min(1), ModelConfig).default({}),
    budgets: z
      .strictObject({
        trial: Budget.prefault({}),
        judges: Budget.optional().meta({
          description: 'What the judges of one trial may use, counted apart; as `trial` where left out.',
        }),
        batch: Budget.prefault({}),
      })
      .prefault({})
      .meta({ description: 'What the models of one trial, and of all trials of a batch, may use together.' }),
    snapshots: z
      .strictObject({ budget: ByteSize.default(20 * 1024 ** 3) })
      .prefault({})
      .meta({ description: 'Disk that kept snapshots may take; those used longest ago go first.' }),
    connections: z
      .strictObject({ harness: ConnectionNames, sandbox: ConnectionNames })
      .prefault({})
      .meta({ description: "Our names of harnesses and sandboxes -> the platform's connection ids." }),
  })
  .meta({ title: 'Offsite configuration' });

export type Config = z.infer<typeof ConfigFile> & {
  /** The file it came from; undefined where there is none and all is default. */
  file: string | undefined;
  /** A problem at a place in that file. */
  issue?: YamlFile<unknown>['issue'];
};

/**
 * Finds and reads `offsite.yaml`: the named file, else `OFFSITE_CONFIG`, else beside the suite, in the
 * working folder, in the user's config folder; the first there is counts, whole. Throws an `input` error
 * where a file named outright is not there.
 */
export function loadConfig(options: {
  named?: string;
  suiteFolder?: string;
  env: NodeJS.ProcessEnv;
}): Config {
  const { env, suiteFolder } = options;
  const named = options.named ?? env.OFFSITE_CONFIG;
  if (named !== undefined && !existsSync(named)) {
    throw new OffsiteError(`the configuration file ${named} does not exist`, {
      code: 'CONFIG_MISSING',
      kind: 'input',
      hint: 'It was named by --config or OFFSITE_CONFIG; correct the path, or leave it out.',
    });
  }
  const userFolder = env.XDG_CONFIG_HOME || join(homedir(), '.config');
  const places = [suiteFolder, '.', join(userFolder, 'offsite')].filter((folder) => folder !== undefined);
  const file = named ?? places.map((folder) => join(folder, 'offsite.yaml')).find((path) => existsSync(path));
  if (file === undefined) return { ...ConfigFile.parse({}), file };
  const { value: config, issue } = readYamlFile(file, ConfigFile);
  const beside = (path: string | undefined) =>
    path === undefined ? undefined : resolve(dirname(file), path);
  const models = Object.fromEntries(
    Object.entries(config.models).map(([name, model]) => [
      name,
      'scripted' in model ? { ...model, scripted: resolve(dirname(file), model.scripted) } : model,
    ]),
  );
  return {
    ...config,
    models,
    caBundle: beside(config.caBundle),
    dataFolder: beside(config.dataFolder),
    file,
    issue,
  };
}
