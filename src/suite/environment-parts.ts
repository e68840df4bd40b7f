import { z } from 'zod';
import { Duration } from './quantities.ts';

/** What environments and the services in them have in common. */

export const Healthcheck = z.strictObject({
  command: z.string().min(1).meta({ description: 'Bash. The sandbox is healthy once it exits with 0.' }),
  interval: Duration.default(5_000).meta({ description: 'Between two runs. Default: 5s.' }),
  timeout: Duration.default(30_000).meta({ description: 'For each run. Default: 30s.' }),
  startPeriod: Duration.default(0).meta({ description: 'How long no failure counts.' }),
  retries: z.int().min(1).max(1000).default(3).meta({ description: 'Failures until it is given up.' }),
});
export type Healthcheck = z.infer<typeof Healthcheck>;

export const BuildSource = z.strictObject({
  context: z.string().min(1).default('.').meta({
    description: 'The folder that the build may copy from, relative to this file. Default: its own folder.',
  }),
  dockerfile: z.string().min(1).default('Dockerfile').meta({
    description: 'The Dockerfile, relative to the context. Default: Dockerfile.',
  }),
  target: z.string().min(1).optional().meta({ description: 'The stage to build. Default: the last one.' }),
  args: z
    .record(z.string().regex(/^\w+$/, 'expected a name of letters, digits and _'), z.coerce.string())
    .default({})
    .meta({
      description: 'Values of the ARGs of the Dockerfile.',
    }),
});

/** Relative paths are in the workspace. */
export const Target = z
  .string()
  .min(1)
  .refine((path) => !path.split('/').includes('..'), 'expected a path without ..');

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
