import { z } from 'zod';
import { bytesOf, deprecated, Seconds } from '../document.ts';

/** The keys of `task.toml`, in the schema's versions 1.0 to 1.4. */

export const schemaVersions = ['1.0', '1.1', '1.2', '1.3', '1.4'];

const Text = z.string().min(1);

/** A path in a container. `..` in a path is a mistake. */
const ContainerPath = Text.refine((path) => path.startsWith('/') && isPlain(path), {
  error: 'expected an absolute path without ..',
});

const RelativePath = Text.refine((path) => !path.startsWith('/') && isPlain(path), {
  error: 'expected a relative path without ..',
});

function isPlain(path: string): boolean {
  return !path.includes('\0') && !path.split(/[/\\]/).includes('..');
}

/** The name of a user, or its number. */
const User = z
  .union([Text, z.int().min(0)], { error: 'expected the name of a user, or its number' })
  .transform(String);

const Variables = z.record(z.string().regex(/^[^=\0]+$/, 'expected the name of a variable'), z.string());

const networkKeys = {
  network_mode: z.enum(['public', 'no-network', 'allowlist']).optional(),
  allowed_hosts: z.array(Text).optional(),
};

const Healthcheck = z
  .object({
    command: Text,
    interval_sec: Seconds.default(5000),
    timeout_sec: Seconds.default(30_000),
    start_period_sec: Seconds.default(0),
    start_interval_sec: Seconds.default(5000),
    retries: z.int().min(0).default(3),
  })
  .transform(({ command, interval_sec: interval, timeout_sec: timeout, start_period_sec, retries }) => {
    return { command, interval, timeout, startPeriod: start_period_sec, retries: Math.max(1, retries) };
  });

const McpServer = z
  .object({
    name: Text,
    transport: z.enum(['sse', 'stdio', 'http', 'streamable-http']).default('sse'),
    url: Text.optional(),
    command: Text.optional(),
    args: z.array(z.string()).default([]),
    headers: z.record(z.string(), z.string()).default({}),
  })
  .refine(({ transport, command }) => transport !== 'stdio' || command !== undefined, {
    error: 'needs a command, because its transport is stdio',
  })
  .refine(({ transport, url }) => transport === 'stdio' || url !== undefined, {
    error: 'needs a url, because its transport is not stdio',
  });

/** `2G`, as the deprecated keys have it. */
const Size = z
  .string()
  .regex(/^\d{1,9}(\.\d+)?\s*[KMGT]i?B?$/i, 'expected a size such as 512M or 2G')
  .transform(bytesOf);

const Environment = z.object({
  docker_image: Text.optional(),
  build_timeout_sec: Seconds.default(600_000),
  os: z.enum(['linux', 'windows']).default('linux'),
  cpus: z.number().positive().max(1e6).optional(),
  memory_mb: z.number().positive().max(1e9).optional(),
  storage_mb: z.number().positive().max(1e9).optional(),
  gpus: z.int().min(0).default(0),
  gpu_types: z.array(Text).optional(),
  tpu: z.object({ type: Text, topology: Text.optional() }).optional(),
  ...networkKeys,
  env: Variables.default({}),
  workdir: ContainerPath.optional(),
  skills_dir: ContainerPath.optional(),
  mcp_servers: z.array(McpServer).default([]),
  healthcheck: Healthcheck.optional(),
  memory: deprecated(Size, 'memory_mb'),
  storage: deprecated(Size, 'storage_mb'),
  allow_internet: deprecated(z.boolean(), 'network_mode'),
});

const Agent = z.object({ timeout_sec: Seconds.optional(), user: User.optional(), ...networkKeys });

const CollectHook = z.object({
  command: Text,
  service: Text.default('main'),
  timeout_sec: Seconds.default(60_000),
  user: User.optional(),
});

const Verifier = z.object({
  timeout_sec: Seconds.default(600_000),
  env: Variables.default({}),
  user: User.optional(),
  ...networkKeys,
  environment_mode: z.enum(['shared', 'separate']).optional(),
  environment: Environment.optional(),
  collect: z.array(CollectHook).optional(),
});

const Artifact = z.union(
  [
    ContainerPath.transform((source) => ({ source, exclude: [], service: 'main' })),
    z.object({
      source: ContainerPath,
      destination: RelativePath.optional(),
      exclude: z.array(Text).default([]),
      service: Text.default('main'),
    }),
  ],
  { error: 'expected an absolute path, or a table with a source' },
);

const Step = z.object({
  // It names a folder.
  name: Text.refine((name) => !/[/\\\0]/.test(name) && name !== '.' && name !== '..', {
    error: 'expected a name without slashes',
  }),
  agent: Agent.optional(),
  verifier: Verifier.optional(),
  min_reward: z.union([z.number(), z.record(z.string(), z.number())]).optional(),
  healthcheck: Healthcheck.optional(),
  artifacts: z.array(Artifact).default([]),
});

export const TaskToml = z.object({
  schema_version: Text.optional(),
  version: Text.optional(),
  source: Text.optional(),
  artifacts: z.array(Artifact).default([]),
  multi_step_reward_strategy: z.enum(['mean', 'final']).default('mean'),
  multi_step_reward_mode: deprecated(z.unknown(), 'multi_step_reward_strategy'),
  task: z
    .object({
      name: Text.optional(),
      version: Text.optional(),
      description: z.string().optional(),
      authors: z.array(z.object({ name: z.string().optional(), email: z.string().optional() })).optional(),
      keywords: z.array(z.string()).default([]),
    })
    .prefault({}),
  metadata: z.record(z.string(), z.unknown()).default({}),
  agent: Agent.prefault({}),
  verifier: Verifier.prefault({}),
  environment: Environment.prefault({}),
  solution: z.object({ env: Variables.default({}) }).prefault({}),
  steps: z.array(Step).default([]),
});

export type TaskToml = z.output<typeof TaskToml>;
export type EnvironmentTable = z.output<typeof Environment>;
export type AgentTable = z.output<typeof Agent>;
export type VerifierTable = z.output<typeof Verifier>;
export type StepTable = z.output<typeof Step>;
export type ArtifactTable = z.output<typeof Artifact>;
