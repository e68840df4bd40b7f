import { z } from 'zod';
import { serviceNetworks } from '../bounds/suite.ts';
import { ByteSize, Duration, MemorySize } from './quantities.ts';
import { Count, NonEmpty } from './text-source.ts';

/** What environments and the services in them have in common. */

export const Healthcheck = z.strictObject({
  command: NonEmpty.describe('Bash. The sandbox is healthy once it exits with 0.'),
  interval: Duration.default(5_000).describe('Between two runs. Default: 5s.'),
  timeout: Duration.default(30_000).describe('For each run. Default: 30s.'),
  startPeriod: Duration.default(0).describe('How long no failure counts.'),
  retries: Count.max(1000).default(3).describe('Failures until it is given up.'),
});
export type Healthcheck = z.infer<typeof Healthcheck>;

export const BuildSource = z.strictObject({
  context: NonEmpty.default('.').describe(
    'The folder that the build may copy from, relative to this file. Default: its own folder.',
  ),
  dockerfile: NonEmpty.default('Dockerfile').describe(
    'The Dockerfile, relative to the context. Default: Dockerfile.',
  ),
  target: NonEmpty.optional().describe('The stage to build. Default: the last one.'),
  args: z
    .record(z.string().regex(/^\w+$/, 'expected a name of letters, digits and _'), z.coerce.string())
    .default({})
    .describe('Values of the ARGs of the Dockerfile.'),
});

/** Limits in place of a sandbox's. */
export const Resources = z.strictObject({
  cpus: z.number().positive().optional().describe('How many processors.'),
  memory: MemorySize.optional().describe('The most memory, with swap.'),
  disk: ByteSize.optional().describe('How much may be written to its disk.'),
});

/** Relative paths are in the workspace. */
export const Target = NonEmpty.refine(
  (path) => !path.split('/').includes('..'),
  'expected a path without ..',
);

export const FileTarget = Target.refine((path) => !/(^|\/)\.?$/.test(path), 'expected the path of a file');

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
    /** The hash of all files that the patterns do not exclude. */
    hash: string;
  };
  /** `images` of the configuration. */
  images: Record<string, string>;
  /** Where the suite names it: `suite.yaml:3:5`. */
  place: string;
}

/** The schema of `services:` in an environment. */

/** As a name in `/etc/hosts`. */
export const HostName = z
  .string()
  .regex(/^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/, 'expected letters, digits and ._- between them')
  .refine((name) => !ownNames.has(name.toLowerCase()), 'this name is taken by the sandbox itself');

const ownNames = new Set(['localhost', 'sandbox', 'ip6-localhost', 'ip6-loopback']);

const Absolute = z.string().regex(/^(\/[\w.@+-]+)+$/, 'expected an absolute path');

/** Lines of `/etc/hosts`. */
export const ExtraHosts = z.record(
  z.string().regex(/^[A-Za-z0-9_.-]{1,253}$/, 'expected the name of a host'),
  z.union([z.ipv4(), z.ipv6()], { error: 'expected an address' }),
);

const Until = z.enum(['started', 'healthy', 'ended']);

const textOrWords = { error: 'expected a text, or a list of texts' };

const ServiceHealthcheck = Healthcheck.extend({
  command: z
    .union([NonEmpty, z.array(z.string()).min(1)], textOrWords)
    .describe(
      'A program with its arguments, or a text for /bin/sh. The service is healthy once it exits with 0.',
    ),
});
export type ServiceHealthcheck = z.infer<typeof ServiceHealthcheck>;

const ServiceSource = z
  .strictObject({
    image: NonEmpty.optional().describe('An image on the engine.'),
    build: BuildSource.optional().describe('A Dockerfile that the engine builds once.'),
    entrypoint: z
      .array(z.string())
      .min(1)
      .optional()
      .describe("In place of the image's own entrypoint and command."),
    command: z.array(z.string()).optional().describe("In place of the image's own command."),
    env: z
      .record(z.string().regex(/^[A-Za-z_]\w*$/, 'expected the name of a variable'), z.coerce.string())
      .default({})
      .describe('Environment variables of the service.'),
    hosts: ExtraHosts.optional().describe('Further names with their addresses.'),
    workdir: Absolute.optional().describe("The working folder. Default: the image's own."),
    user: NonEmpty.optional().describe("Name or id. Default: the image's own."),
    aliases: z.array(HostName).default([]).describe('Further names of the service.'),
    healthcheck: z
      .union([ServiceHealthcheck, z.literal(false)])
      .optional()
      .describe("What must succeed before the harness runs. Default: the image's own. false: none."),
    dependsOn: z
      .record(z.string(), Until)
      .default({})
      .describe(
        'Other services, and what they must be before this one starts: started, healthy, or ended with 0.',
      ),
    files: z
      .record(FileTarget, NonEmpty)
      .optional()
      .describe('Absolute path in the service -> file beside this one.'),
    folders: z.record(NonEmpty, NonEmpty).optional().describe('The same for folders, with what is in them.'),
    memoryFolders: z
      .array(Absolute)
      .default([])
      .describe('Folders that are kept in memory. They begin empty.'),
    volumes: z.array(Absolute).optional().describe('Folders that are made where the image has none.'),
    resources: Resources.default({}).describe("Default: the sandbox's limits."),
  })
  .refine(({ image, build }) => (image === undefined) !== (build === undefined), 'needs an image or a build')
  .refine(
    ({ files = {}, folders = {} }) =>
      Object.keys({ ...files, ...folders }).every((path) => path.startsWith('/')),
    'files and folders of a service need absolute paths',
  );
export type ServiceSource = z.infer<typeof ServiceSource>;

export const Services = z.record(HostName, ServiceSource).superRefine((services, context) => {
  const all = Object.entries(services).map(([name, { aliases, dependsOn }]) => ({
    name,
    aliases,
    dependsOn: dependenciesOf(dependsOn),
  }));
  for (const { path, message } of serviceProblems(all)) context.addIssue({ code: 'custom', path, message });
});

export function dependenciesOf(given: ServiceSource['dependsOn']): PlannedService['dependsOn'] {
  return Object.entries(given).map(([service, until]) => ({ service, until }));
}

/** A container beside the sandbox, with the files that its source names. */
export type PlannedService = Omit<
  ServiceSource,
  'image' | 'build' | 'healthcheck' | 'dependsOn' | 'files' | 'folders'
> & {
  name: string;
  image?: NamedImage | undefined;
  /** Instead of an image. */
  build?: PlannedBuild | undefined;
  /** `none`: not even the image's own. Undefined for the image's own. */
  healthcheck?: ServiceHealthcheck | 'none' | undefined;
  /** What must have happened to other services before it starts. `ended`: with exit code 0. */
  dependsOn: { service: string; until: z.infer<typeof Until> }[];
  /** Put there before it starts. Undefined for none. */
  files?: PlacedFile[] | undefined;
  /** Where it is named: `suite.yaml:3:5`. */
  place: string;
};

/** What is wrong with the services of an environment as a whole. Paths begin with the name of a service. */
export function serviceProblems(
  services: readonly Pick<PlannedService, 'name' | 'aliases' | 'dependsOn'>[],
): { path: string[]; message: string }[] {
  const [mostServices, mostNames] = [serviceNetworks.count.services, serviceNetworks.count.names];
  if (services.length > mostServices)
    return [
      { path: [], message: `there are ${services.length} services; Offsite runs at most ${mostServices}` },
    ];
  const named = services.flatMap(({ name, aliases }) => [name, ...aliases].map((each) => ({ each, name })));
  const first = new Map(named.toReversed().map(({ each, name }) => [each, name]));
  const repeated = named
    .filter(({ each, name }) => first.get(each) !== name)
    .map(({ each, name }) => ({ path: [name], message: `${each} is also a name of ${first.get(each)}` }));
  const known = new Set(services.map(({ name }) => name));
  const unknown = services.flatMap(({ name, dependsOn }) =>
    dependsOn
      .filter(({ service }) => !known.has(service))
      .map(({ service }) => ({ path: [name, 'dependsOn'], message: `there is no service ${service}` })),
  );
  const circular = services
    .filter(({ name }) => reaches(services, name, name))
    .map(({ name }) => ({
      path: [name, 'dependsOn'],
      message: 'it depends on itself through other services',
    }));
  const many =
    named.length > mostNames
      ? [{ path: [], message: `services have at most ${mostNames} names together` }]
      : [];
  return [...repeated, ...unknown, ...circular, ...many];
}

function reaches(
  services: readonly Pick<PlannedService, 'name' | 'dependsOn'>[],
  from: string,
  to: string,
): boolean {
  const seen = new Set<string>();
  const next = [from];
  for (let name = next.pop(); name !== undefined; name = next.pop()) {
    for (const { service } of services.find((one) => one.name === name)?.dependsOn ?? []) {
      if (service === to) return true;
      if (!seen.has(service)) next.push(service);
      seen.add(service);
    }
  }
  return false;
}
