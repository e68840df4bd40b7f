import { z } from 'zod';
import type { PlannedSource } from './git/git-source.ts';
import { ByteSize, Duration } from './quantities.ts';
import { isReservedName } from './variables.ts';

/** The schema of `environment:`, for the whole suite or for one case. */

const Workdir = z
  .string()
  .regex(/^(\/[\w.@+-]+)+$/, 'expected an absolute path of letters, digits and ._@+-, such as /app')
  .refine((path) => workdirObstacle(path) === undefined, 'Offsite cannot use this folder as the workspace');

const Healthcheck = z.strictObject({
  command: z.string().min(1).meta({ description: 'Bash. The sandbox is healthy once it exits with 0.' }),
  interval: Duration.default(5_000).meta({ description: 'Between two runs. Default: 5s.' }),
  timeout: Duration.default(30_000).meta({ description: 'For each run. Default: 30s.' }),
  startPeriod: Duration.default(0).meta({ description: 'How long no failure counts. Default: 0s.' }),
  retries: z.int().min(1).max(1000).default(3).meta({ description: 'Failures until it is given up.' }),
});
export type Healthcheck = z.infer<typeof Healthcheck>;

const BuildSource = z.strictObject({
  context: z.string().min(1).default('.').meta({
    description: 'The folder that the build may copy from, relative to this file. Default: its own folder.',
  }),
  dockerfile: z.string().min(1).default('Dockerfile').meta({
    description: 'The Dockerfile, relative to the context. Default: Dockerfile.',
  }),
  target: z.string().min(1).optional().meta({ description: 'The stage to build. Default: the last one.' }),
  args: z.record(z.string().regex(/^\w+$/), z.coerce.string()).default({}).meta({
    description: 'Values of the ARGs of the Dockerfile.',
  }),
});

/** Relative paths are in the workspace. */
const Target = z
  .string()
  .min(1)
  .refine((path) => !path.split('/').includes('..'), 'expected a path without ..');

const FileTarget = Target.refine((path) => !/(^|\/)\.?$/.test(path), 'expected the path of a file');

const EnvironmentParts = z.strictObject({
  build: BuildSource.optional().meta({
    description: "A Dockerfile that the engine builds once, in place of the sandbox's image.",
  }),
  image: z.string().min(1).optional().meta({
    description: "An image on the engine, in place of the sandbox's. `images` of offsite.yaml may map it.",
  }),
  workdir: Workdir.optional().meta({
    description: "The workspace's folder. Default: the image's own working folder, else /workspace.",
  }),
  user: z.string().min(1).optional().meta({
    description: "Name or id of the user that runs everything. Default: the sandbox's, else the image's.",
  }),
  env: z
    .record(
      z
        .string()
        .regex(/^[A-Za-z_]\w*$/, 'expected a name of letters, digits and _')
        .refine((name) => !isReservedName(name), 'this name decides how programs run; set it in the image'),
      z.string(),
    )
    .optional()
    .meta({ description: 'Environment variables of prepare, harness, verify and validator.' }),
  files: z.record(FileTarget, z.string().min(1)).optional().meta({
    description: 'Path in the workspace, or absolute path -> file beside this one. Put there before prepare.',
  }),
  folders: z.record(Target, z.string().min(1)).optional().meta({
    description: 'The same for folders, with what is in them.',
  }),
  healthcheck: Healthcheck.optional().meta({
    description: 'What must succeed in each sandbox before the harness runs, and before it is graded.',
  }),
  resources: z
    .strictObject({
      cpus: z.number().positive().optional(),
      memory: ByteSize.optional(),
      disk: ByteSize.optional().meta({ description: 'How much a trial may write to its disk.' }),
    })
    .optional()
    .meta({ description: "Limits in place of the sandbox's." }),
});
export const EnvironmentSource = EnvironmentParts.refine(
  ({ image, build }) => image === undefined || build === undefined,
  'has an image and a build; remove one of them',
);
export type EnvironmentSource = z.infer<typeof EnvironmentSource>;

/** What a case says about its environment. Everything else is as in the variant's sandbox. */
export interface CaseEnvironment {
  image?: NamedImage | undefined;
  /** Instead of an image. */
  build?: PlannedBuild | undefined;
  workdir?: string | undefined;
  user?: string | undefined;
  env: Record<string, string>;
  /** What must succeed in a sandbox before it is used. */
  healthcheck?: Healthcheck | undefined;
  /** What is put into the sandbox before prepare. Undefined for none. */
  files?: PlacedFile[] | undefined;
  resources: { cpus?: number | undefined; memory?: number | undefined; disk?: number | undefined };
  /** A repository that is put into the workspace before `files`. */
  source?: PlannedSource | undefined;
  /** Milliseconds, in place of the sandbox's. */
  timeouts?: { build?: number | undefined; harness?: number | undefined } | undefined;
}

/** A file, a link or a folder for the sandbox. A relative path is in the workspace. */
export type PlacedFile = { path: string } & (
  | { content: Buffer; mode: number }
  | { linkTarget: string }
  | { folder: true; mode: number }
);

/** An image that a case names. */
export interface NamedImage {
  name: string;
  /** The image that `images` of the configuration maps the name to. */
  mappedTo?: string | undefined;
  /** Where the suite names it: `suite.yaml:3:5`. */
  place: string;
}

/** A build whose files were read when the suite was. */
export interface PlannedBuild {
  /** For people: the Dockerfile, relative to the suite. */
  name: string;
  /** The Dockerfile's path. */
  file: string;
  dockerfile: string;
  target?: string | undefined;
  args: Record<string, string>;
  context: {
    /** Absolute. */
    folder: string;
    /** The patterns of `.dockerignore`. */
    ignore: string;
    /** Of all that the patterns leave. */
    hash: string;
  };
  /** `images` of the configuration. */
  images: Record<string, string>;
  /** Where the suite names it: `suite.yaml:3:5`. */
  place: string;
}

export const noEnvironment: CaseEnvironment = { env: {}, resources: {} };

interface SandboxParts {
  image: string;
  user?: string | undefined;
  cpus: number;
  memory: number;
  disk: number;
  timeouts: { build: number; harness: number };
}

/** A variant's sandbox with what a case changes in it. */
export function sandboxIn<Sandbox extends SandboxParts>(
  sandbox: Sandbox,
  { image, build, user, resources, timeouts = {} }: CaseEnvironment,
): Sandbox {
  const { cpus = sandbox.cpus, memory = sandbox.memory, disk = sandbox.disk } = resources;
  const { build: buildMs = sandbox.timeouts.build, harness = sandbox.timeouts.harness } = timeouts;
  return {
    ...sandbox,
    ...(image && { image: image.mappedTo ?? image.name }),
    ...(build && { image: `built from ${build.name}` }),
    ...(user !== undefined && { user }),
    ...{ cpus, memory, disk },
    timeouts: { ...sandbox.timeouts, build: buildMs, harness },
  };
}

/** Why a folder cannot be a workspace, which is emptied and filled again; undefined if it can. */
export function workdirObstacle(path: string): string | undefined {
  if (path.split('/').some((part) => part === '..' || part === '.')) return 'it contains . or ..';
  if (systemFolders.has(path)) return 'it is a folder of the system';
  const isOurs = /^\/(offsite|dev|proc|sys)([/-]|$)/.test(path);
  return isOurs ? 'it is a folder of Offsite or of the kernel' : undefined;
}

const systemFolders = new Set(
  ['', 'bin', 'boot', 'etc', 'home', 'lib', 'lib32', 'lib64', 'opt', 'run', 'sbin', 'tmp', 'usr', 'var'].map(
    (name) => `/${name}`,
  ),
);
