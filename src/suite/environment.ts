import { z } from 'zod';
import { pathLists } from '../bounds/sandbox.ts';
import type { PlannedSource } from './git/git-source.ts';
import { Duration, Label } from './quantities.ts';
import {
  BuildSource,
  ExtraHosts,
  FileTarget,
  Healthcheck,
  HostName,
  type NamedImage,
  type PlacedFile,
  type PlannedBuild,
  type PlannedService,
  Resources,
  Services,
  Target,
} from './services.ts';
import { NonEmpty } from './text-source.ts';
import { isReservedName, refuseLongVariables } from './variables.ts';

/** What an environment starts with its container, as an engine alone would. */
export const StartUp = z.strictObject({
  entrypoint: z.array(z.string()).optional().describe("In place of the image's own entrypoint and command."),
  command: z.array(z.string()).optional().describe("In place of the image's own command."),
});
export type StartUp = z.infer<typeof StartUp>;

/** What an image starts. */
interface ImageProgram {
  entrypoint: readonly string[];
  command: readonly string[];
}

/**
 * The program of an environment, by the rules of engines. Undefined if there is none, or if it only keeps its
 * container alive, which Offsite's own program does.
 */
export function startUpOf(startUp: StartUp | undefined, image: ImageProgram): readonly string[] | undefined {
  if (!startUp) return undefined;
  const { entrypoint = image.entrypoint, command = startUp.entrypoint ? [] : image.command } = startUp;
  const argv = [...withoutStarter(entrypoint), ...command];
  return argv.length === 0 || isIdle(argv) ? undefined : argv;
}

/** Whether a command only keeps its container alive: it sleeps, or waits for what a person types. */
export function isIdle(command: readonly string[]): boolean {
  const text = command.join(' ').trim();
  return (
    /^((\/bin\/)?(ba)?sh -c )?(exec )?(sleep infinity|tail -f \/dev\/null)$/.test(text) ||
    /^(\/(usr\/)?(local\/)?bin\/)?((ba|da|z)?sh|python3?|node|irb)( -[il]+)?$/.test(text)
  );
}

/** Without an init program, which only starts another program and reaps orphaned processes. */
function withoutStarter(entrypoint: readonly string[]): readonly string[] {
  const [first = ''] = entrypoint;
  if (!/(^|\/)(tini|dumb-init|catatonit)$/.test(first)) return entrypoint;
  const next = entrypoint.findIndex((word, index) => index > 0 && !word.startsWith('-'));
  return next === -1 ? [] : entrypoint.slice(next);
}

/** The schema of `environment:`, for the whole suite or for one case. */

const Workdir = z
  .string()
  .regex(/^(\/[\w.@+-]+)+$/, 'expected an absolute path of letters, digits and ._@+-, such as /app')
  .refine((path) => !isPathTooLong(path), { error: 'this path is longer than engines take', abort: true })
  .refine(
    (path) => workdirObstacle(path, 'kept') === undefined,
    'Offsite cannot use this folder as the workspace',
  );

const EnvironmentParts = z.strictObject({
  build: BuildSource.optional().describe(
    "A Dockerfile that the engine builds once, in place of the sandbox's image.",
  ),
  image: NonEmpty.optional().describe(
    "An image on the engine, in place of the sandbox's. `advanced.images` of offsite.yaml may map it.",
  ),
  workdir: Workdir.optional().describe(
    "The workspace's folder. Default: the image's own working folder, else /workspace.",
  ),
  user: NonEmpty.optional().describe(
    "Name or id of the user that runs everything. Default: the sandbox's, else the image's.",
  ),
  env: z
    .record(
      z
        .string()
        .regex(/^[A-Za-z_]\w*$/, 'expected a name of letters, digits and _')
        .refine((name) => !isReservedName(name), 'this name decides how programs run; set it in the image'),
      z.string(),
    )
    .superRefine(refuseLongVariables)
    .optional()
    .describe('Environment variables of prepare, harness, verify and validator.'),
  files: z
    .record(FileTarget, NonEmpty)
    .optional()
    .describe('Path in the workspace, or absolute path -> file beside this one. Put there before prepare.'),
  folders: z.record(Target, NonEmpty).optional().describe('The same for folders, with what is in them.'),
  writable: z
    .array(FileTarget)
    .optional()
    .describe('Folders that any user may write to, such as /logs. Made before prepare.'),
  timeouts: z
    .strictObject({
      build: Duration.optional().describe('For the build of a Dockerfile.'),
      harness: Duration.optional().describe("For the harness's work."),
    })
    .optional()
    .describe("In place of the sandbox's."),
  healthcheck: Healthcheck.optional().describe(
    'What must succeed in each sandbox before the harness runs, and before it is graded.',
  ),
  services: Services.optional().describe(
    'Further containers, which the sandbox reaches by their names. They end with the trial.',
  ),
  hosts: ExtraHosts.optional().describe('Names with their addresses, for /etc/hosts.'),
  startUp: StartUp.optional().describe(
    "Starts the image's own program with each sandbox, as engines do. {}: as the image says it.",
  ),
  nameForServices: HostName.optional().describe('A further name that the services reach the sandbox by.'),
  resources: Resources.optional().describe("Limits in place of the sandbox's."),
  needs: z
    .array(Label)
    .optional()
    .describe('What the machine must have, by its `labels`, besides what the sandbox needs: gpu, arm64.'),
});
export const EnvironmentSource = EnvironmentParts.refine(
  ({ image, build }) => image === undefined || build === undefined,
  'has an image and a build; remove one of them',
);
export type EnvironmentSource = z.infer<typeof EnvironmentSource>;

/**
 * What a case says about its environment, with the files that it names. Everything else is as in the
 * variant's sandbox.
 */
export type CaseEnvironment = Pick<
  EnvironmentSource,
  'workdir' | 'user' | 'healthcheck' | 'nameForServices' | 'needs' | 'hosts' | 'startUp' | 'timeouts'
> & {
  image?: NamedImage | undefined;
  /** Instead of an image. */
  build?: PlannedBuild | undefined;
  env: Record<string, string>;
  /** What is put into the sandbox before prepare. Undefined for none. */
  files?: PlacedFile[] | undefined;
  /** Containers that run beside the sandbox. Undefined for none. */
  services?: PlannedService[] | undefined;
  resources: NonNullable<EnvironmentSource['resources']>;
  /** Folders that are made in each sandbox where its image has nothing. Undefined for none. */
  volumes?: string[] | undefined;
  /** A repository that is put into the workspace before `files`. */
  source?: PlannedSource | undefined;
};

export type { NamedImage, PlacedFile, PlannedBuild } from './services.ts';

export const noEnvironment: CaseEnvironment = { env: {}, resources: {} };

interface SandboxParts {
  image: string;
  user?: string | undefined;
  cpus: number;
  memory: number;
  disk: number;
  needs?: string[] | undefined;
  timeouts: { build: number; harness: number };
}

/** A variant's sandbox with what a case changes in it. */
export function sandboxIn<Sandbox extends SandboxParts>(
  sandbox: Sandbox,
  { image, build, user, resources, needs = [], timeouts = {} }: CaseEnvironment,
): Sandbox {
  const { cpus = sandbox.cpus, memory = sandbox.memory, disk = sandbox.disk } = resources;
  const { build: buildMs = sandbox.timeouts.build, harness = sandbox.timeouts.harness } = timeouts;
  return {
    ...sandbox,
    ...(image && { image: image.mappedTo ?? image.name }),
    ...(build && { image: `built from ${build.name}` }),
    ...(user !== undefined && { user }),
    cpus,
    memory,
    disk,
    ...(needs.length > 0 && { needs: [...new Set([...(sandbox.needs ?? []), ...needs])] }),
    timeouts: { ...sandbox.timeouts, build: buildMs, harness },
  };
}

/**
 * Why a folder cannot be a workspace; undefined if it can.
 *
 * @param use `emptied`: verify and validators run in a fresh sandbox, whose workspace is emptied and filled
 * with the agent's. `kept`: tests run where the agent worked, or get only its artifacts
 */
export function workdirObstacle(path: string, use: 'emptied' | 'kept' = 'emptied'): string | undefined {
  if (path.split('/').some((part) => part === '..' || part === '.')) return 'it contains . or ..';
  if (isPathTooLong(path)) return 'its path is longer than engines take';
  if (isSharedFolder(path))
    return use === 'kept' ? undefined : 'it has files of other programs, so it cannot be emptied to grade';
  if (systemFolders.has(path)) return 'it is a folder of the system';
  const isOurs = /^\/(offsite|dev|proc|sys)([/-]|$)/.test(path);
  return isOurs ? 'it is a folder of Offsite or of the kernel' : undefined;
}

/** Whether an engine cannot make this path in a container. */
export function isPathTooLong(path: string): boolean {
  const isLong = path.split('/').some((name) => Buffer.byteLength(name) > nameMax);
  return isLong || Buffer.byteLength(path) > pathLists.bytes.path;
}

/** Bytes of the longest name on Linux. */
const nameMax = 255;

/** Whether a folder may hold files of unrelated programs that work without these files. */
export function isSharedFolder(path: string): boolean {
  return ['/home', '/opt', '/tmp'].includes(path);
}

const systemFolders = new Set(
  ['', 'bin', 'boot', 'etc', 'lib', 'lib32', 'lib64', 'run', 'sbin', 'usr', 'var'].map((name) => `/${name}`),
);
