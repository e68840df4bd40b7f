import { z } from 'zod';
import { EngineAddress, EngineList, engineListIssue } from './engines-config.ts';
import { FleetConfig } from './fleet-config.ts';
import { isHostPattern } from './hosts/host-pattern.ts';
import { McpServers } from './mcp-server.ts';
import { Budget, defaultUsd, ModelConfig } from './model-config.ts';
import { ByteSize, Duration, Label } from './quantities.ts';
import { SandboxConfig } from './sandbox-config.ts';
import { Count, NonEmpty, Text } from './text-source.ts';
import { refuseLongVariables, VariableName } from './variables.ts';
import type { YamlFile } from './yaml-file.ts';

const listenForm = 'expected an address such as 127.0.0.1:9320, or a port in quotes, "9320"';

/** Settings of `offsite daemon`: `daemon` of `offsite.yaml`. */
export const DaemonConfig = z.strictObject({
  suites: z
    .array(NonEmpty)
    .default([])
    .describe('Ids of suites at the service. The daemon polls all of their cases for runs.'),
  cases: z.array(NonEmpty).default([]).describe('Ids of further cases to poll.'),
  poll: z
    .strictObject({
      min: Duration.default(5_000).describe('The shortest time between two polls.'),
      max: Duration.default(60_000).describe('The longest time between two polls.'),
    })
    .prefault({})
    .refine(({ min, max }) => min > 0 && min <= max, 'expected min to be more than 0 and no more than max')
    .describe(
      'The time between two polls of one poll target: min while runs arrive, up to max while none do. ' +
        'It varies at random by a quarter.',
    ),
  profiles: z
    .record(z.string(), z.string())
    .default({})
    .describe('Harness -> profile, for runs whose record names no profile.'),
  judges: z.array(NonEmpty).default([]).describe('Models that the validators of the daemon’s runs may use.'),
  listen: z
    .string(listenForm)
    .regex(/^(.+:)?\d{1,5}$/, listenForm)
    .optional()
    .describe('The address that serves /healthz, /readyz, /metrics and /status. Default: none.'),
});
export type DaemonConfig = z.infer<typeof DaemonConfig>;

/** What a harness is given, and how it is started: `profiles` of `offsite.yaml`. */
const ProfileConfig = z.strictObject({
  install: Text.optional().describe(
    'A script that runs once, with network. Its result is kept as a snapshot.',
  ),
  run: Text.optional().describe('For the harnesses command and acp: the script that is the agent.'),
  stream: NonEmpty.optional().describe(
    'For the command harness: what the run script prints on stdout. jsonl, or the name of a harness ' +
      'whose stream it prints: claude-code, codex, and others. Default: nothing that is read.',
  ),
  trajectory: z
    .enum(['wire', 'none'])
    .optional()
    .describe(
      'For the command harness: where the commands of a trial come from. wire: from the model traffic. ' +
        'none: they are not known. Default: the stream; without one, the model traffic if it shows any, ' +
        'else the commands of the run script.',
    ),
  version: z
    .string()
    .regex(/^[\w.+-]+$/, 'expected a version such as 1.2.3')
    .optional()
    .describe("The version of the harness's CLI to use instead of the pinned one."),
  args: z.array(z.string()).optional().describe("Arguments to add to the command line of the harness's CLI."),
  env: z
    .record(z.string(), z.string())
    .superRefine(refuseLongVariables)
    .optional()
    .describe('Environment variables of the harness.'),
  mcpServers: McpServers.optional().describe('Tool servers of the Model Context Protocol, by name.'),
  maxTurns: Count.optional().describe('The maximum number of turns of model and tools.'),
  tellDeadline: z
    .boolean()
    .optional()
    .describe(
      'Whether the harness gets to know how much time and budget it has left: in its environment, and for bash in ' +
        'the conversation. Default: false.',
    ),
  folders: z
    .record(z.string().startsWith('/', 'expected an absolute path in the sandbox'), z.string())
    .optional()
    .describe('Absolute path in the sandbox -> folder beside this file, such as skills or instructions.'),
  files: z
    .record(z.string().startsWith('/', 'expected an absolute path in the sandbox'), z.string())
    .optional()
    .describe('Absolute path in the sandbox -> file beside this file.'),
});
export type ProfileConfig = z.infer<typeof ProfileConfig>;

/**
 * The schema of `offsite.yaml`: the profiles, sandboxes and models of this machine, and how it reaches the
 * service and the engine.
 */

const ConnectionNames = z.record(z.string(), z.string()).default({});

/** What most machines leave as it is: `advanced` of `offsite.yaml`. */
const Advanced = z.strictObject({
  images: z
    .record(NonEmpty, NonEmpty)
    .default({})
    .describe('Image that a suite names -> image to use instead. Results say so.'),
  caBundle: NonEmpty.optional().describe('PEM file of certificates to trust in addition to the usual ones.'),
  pull: z
    .enum(['never', 'missing', 'always'])
    .default('missing')
    .describe(
      'Whether images that a case or a sandbox names are pulled. missing: those that the engine does not ' +
        'have. always: all, so that a name that moved is noticed.',
    ),
  snapshots: z
    .strictObject({
      budget: ByteSize.default(20 * 1024 ** 3).describe('The most disk space.'),
    })
    .prefault({})
    .describe('Disk space for kept snapshots. The least recently used ones are removed first.'),
  workspaces: z
    .strictObject({
      budget: z
        .union([z.literal(0), ByteSize])
        .default(10 * 1024 ** 3)
        .describe('The most disk space. 0: nothing is kept.'),
    })
    .prefault({})
    .describe(
      'Disk space for what trials left, which `offsite trial regrade` grades again. The oldest are removed ' +
        'first. 0: nothing is kept.',
    ),
  lease: Duration.refine((ms) => ms >= 1_000 && ms <= 3_600_000, 'expected a duration from 1s to 1h')
    .default(90_000)
    .describe(
      'How long a service that has claims keeps a running trial for this agent without hearing from it. ' +
        'The agent renews that all the time. After a crash, other agents may run the trial when it is over.',
    ),
});

/** The keys of `advanced` that were at the top in the release before, where they are still read. */
const movedKeys = Advanced.pick({
  images: true,
  caBundle: true,
  pull: true,
  snapshots: true,
  workspaces: true,
  lease: true,
});

/** Without their defaults. */
function oldPlaces<Shape extends z.ZodRawShape>({ shape }: z.ZodObject<Shape>) {
  const old = Object.entries(shape).map(([key, schema]) => {
    const inner =
      schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault ? schema.unwrap() : schema;
    return [key, z.optional(inner).meta({ deprecated: true, description: `Now: advanced.${key}.` })];
  });
  return Object.fromEntries(old) as { [Key in keyof Shape]: z.ZodOptional<Shape[Key]> };
}

export const ConfigFile = z
  .strictObject({
    ...oldPlaces(movedKeys),
    service: z
      .strictObject({
        url: z.url().describe('The address of the service.'),
        apiKeyEnv: VariableName.default('OFFSITE_API_KEY').describe(
          'The name of the environment variable that holds the key.',
        ),
        insecureHttp: z
          .boolean()
          .default(false)
          .describe('Allows plain http to a service that is not on this machine.'),
      })
      .optional()
      .describe('The Eval Service that gets the results. Default: the embedded one.'),
    engine: z
      .strictObject(
        {
          host: EngineAddress.describe(
            'The address of the engine, such as unix:///var/run/docker.sock or ssh://host.',
          ),
        },
        { error: 'expected {host: address}, such as {host: ssh://user@host}' },
      )
      .optional()
      .describe(
        'The container engine. Default: what the docker CLI uses, or the first of the usual sockets that answers.',
      ),
    engines: EngineList,
    labels: z
      .array(Label)
      .default([])
      .describe('What this machine has that a sandbox may need: big-disk. They only place trials.'),
    dataFolder: NonEmpty.optional().describe(
      'The folder of results. Default: $OFFSITE_HOME, or ~/.local/share/offsite.',
    ),
    allowOutside: z
      .array(NonEmpty)
      .default([])
      .describe(
        "Files and folders outside a suite's folder that suites may read, relative to this file: with `.`, a " +
          'suite in evals/ may use the repository that it is in.',
      ),
    concurrency: Count.optional().describe(
      "How many trials run at a time. Default: as many as the engine's cores and memory allow.",
    ),
    baselines: z
      .strictObject({
        audited: z
          .literal('regraded')
          .optional()
          .describe(
            'regraded: reported trials count for baselines if `offsite serve` graded their evidence again. ' +
              'Default: reported trials never count.',
          ),
      })
      .prefault({})
      .describe('What counts for the baselines of `offsite serve`.'),
    daemon: DaemonConfig.prefault({}).describe('Settings of `offsite daemon`.'),
    fleet: FleetConfig.prefault({}).describe('Settings of `offsite fleet`.'),
    profiles: z
      .record(z.string(), ProfileConfig)
      .default({})
      .describe('Profiles by name: what a harness is given, and how it is started.'),
    sandboxes: z
      .record(z.string(), SandboxConfig)
      .default({})
      .describe('Sandboxes by name. `local` is there without an entry.'),
    models: z.record(NonEmpty, ModelConfig).default({}).describe('Models by name.'),
    budgets: z
      .strictObject({
        trial: Budget.prefault({}).describe('What the models of one trial may use together.'),
        judges: Budget.optional().describe(
          'What the judges of one trial may use, counted separately. Default: as `trial`.',
        ),
        batch: Budget.prefault({}).describe('What all trials of a batch may use together.'),
      })
      .prefault({})
      .describe('Limits for the models of one trial together, and of all trials of a batch together.'),
    git: z
      .strictObject({
        credentials: z
          .array(z.string().refine(isHostPattern, 'expected a host, such as github.com or *.example:8443'))
          .default([])
          .describe(
            'Hosts at which the git sources of suites may use your credentials and your settings of git: github.com, ' +
              '*.example. At others, git asks without them; ssh is refused there.',
          ),
      })
      .prefault({})
      .describe('How the git sources of suites are fetched.'),
    connections: z
      .strictObject({
        harness: ConnectionNames.describe('Name of a harness -> its id at the service.'),
        sandbox: ConnectionNames.describe('Name of a sandbox -> its id at the service.'),
      })
      .prefault({})
      .describe("Names of harnesses and sandboxes in this file -> the platform's connection ids."),
    advanced: Advanced.prefault({}).describe('What most machines leave as it is.'),
  })
  .superRefine((config, context) => {
    const issue = (path: (string | number)[], message: string) =>
      context.addIssue({ code: 'custom', path, message });
    const odd = engineListIssue(config);
    if (config.engine && config.engines) issue(['engines'], 'use either engine or engines');
    else if (odd) issue(['engines', odd.index], odd.message);
  })
  .transform(({ advanced, ...config }) => {
    const moved = Object.keys(movedKeys.shape).filter((key) => key in config);
    return { ...advanced, ...(config as Omit<typeof config, keyof typeof advanced>), moved };
  })
  .meta({ title: 'Offsite configuration' });

export type Config = Omit<z.infer<typeof ConfigFile>, 'budgets'> & {
  budgets: Budgets;
  /** The file that was read. Undefined if there is none and all values are defaults. */
  file: string | undefined;
  /** Without a file: the folders in which it was looked for. */
  searched?: readonly string[];
  /** Reports a problem at a position in that file. */
  issue?: YamlFile<unknown>['issue'];
};

interface Budgets {
  trial: Budget;
  judges?: Budget | undefined;
  batch: Budget;
}

/** Limits budgets in USD that the file does not limit, if a model has prices. */
export function withDefaultBudgets(
  { trial, judges, batch }: Budgets,
  models: Readonly<Record<string, ModelConfig>>,
): Budgets {
  const isPriced = Object.values(models).some((model) => !('scripted' in model) && model.prices);
  const limited = ({ usd, ...budget }: Budget, preset: number): Budget => {
    if (usd === Number.POSITIVE_INFINITY) return budget;
    if (usd !== undefined) return { usd, ...budget };
    return isPriced ? { usd: preset, usdIsDefault: true, ...budget } : budget;
  };
  return {
    trial: limited(trial, defaultUsd.trial),
    ...(judges && { judges: limited(judges, defaultUsd.trial) }),
    batch: limited(batch, defaultUsd.batch),
  };
}

/** What to print about limits that nobody set; undefined if there are none. */
export function defaultBudgetsText({ trial, batch }: Budgets): string | undefined {
  const limits = [
    ...(trial.usdIsDefault ? [`${trial.usd} USD for the models of a trial (budgets.trial.usd)`] : []),
    ...(batch.usdIsDefault ? [`${batch.usd} USD for those of a batch (budgets.batch.usd)`] : []),
  ];
  if (limits.length === 0) return undefined;
  return `limited by default: ${limits.join(' and ')}; set these in offsite.yaml, or \`unlimited\``;
}
