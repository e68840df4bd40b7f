import { z } from 'zod';
import { workdirObstacle } from './environment.ts';
import { isHostPattern } from './hosts/host-pattern.ts';
import { Duration } from './quantities.ts';

/** The schema of `tests:`, and of a `solution:` with files. */

const FromFolder = z.string().min(1).meta({ description: 'A path, relative to this file.' });

const Absolute = z
  .string()
  .regex(/^(\/[^/]+)+$/, 'expected an absolute path, such as /tests')
  .refine((path) => !path.split('/').some((part) => part === '.' || part === '..'), 'expected no . or ..');

/** A folder that is emptied. */
const OwnFolder = Absolute.refine(
  (path) => workdirObstacle(path) === undefined,
  'a folder of the system cannot be emptied for tests',
);

const InOwnFolder = Absolute.refine(
  (path) => workdirObstacle(path.slice(0, path.lastIndexOf('/')) || '/') === undefined,
  'its folder would be emptied for the tests, which cannot be done with a folder of the system',
);

const Threshold = z.number();

const command = z.array(z.string().min(1)).min(1).meta({ description: 'A program and its arguments.' });
const env = z.record(z.string().min(1), z.string()).optional();

export const CaseHosts = z
  .array(z.string().refine(isHostPattern, 'expected a host such as registry.example or *.example'))
  .meta({
    description:
      'The hosts that it may reach at most, all of which `hosts` of the sandbox must permit. [] for none.',
  });

export const TestsSource = z
  .strictObject({
    folders: z.record(OwnFolder, FromFolder).optional().meta({
      description:
        'Path in the sandbox -> folder. Put there when the agent has ended; nothing else is there.',
    }),
    files: z.record(InOwnFolder, FromFolder).optional().meta({ description: 'The same for single files.' }),
    command,
    env: env.meta({ description: 'Environment variables of the tests.' }),
    user: z.string().min(1).optional().meta({ description: "Runs the tests. Default: the sandbox's user." }),
    timeout: Duration.default(600_000).meta({ description: 'Default: 10m.' }),
    rewards: z
      .strictObject({ json: InOwnFolder, text: InOwnFolder })
      .optional()
      .meta({ description: 'Files that the tests write: an object of numbers in JSON, else one number.' }),
    collect: z
      .array(
        z.strictObject({
          command: z.string().min(1).meta({ description: 'Bash.' }),
          timeout: Duration.default(60_000).meta({ description: 'Default: 60s.' }),
          user: z.string().min(1).optional(),
        }),
      )
      .optional()
      .meta({ description: 'Run when the agent has ended, before anything is collected. May fail.' }),
    hosts: CaseHosts.optional(),
    prints: z
      .enum(['pytest', 'swebench'])
      .optional()
      .meta({ description: 'The tests print results in place of rewards, in this form.' }),
    threshold: z
      .union([Threshold, z.record(z.string(), Threshold)], {
        error: 'expected a number, or {reward: number}',
      })
      .default(1)
      .meta({ description: 'What each reward must reach for a pass, or some rewards by name. Default: 1.' }),
  })
  .refine(({ rewards, prints }) => (rewards === undefined) !== (prints === undefined), {
    message: 'expected rewards or prints, one of them',
  })
  .meta({
    description: "In place of verify and validator: tests that run in the agent's own sandbox. Local.",
  });
export type TestsSource = z.infer<typeof TestsSource>;

export const OracleSource = z.strictObject({
  command,
  folders: z.record(Absolute, FromFolder).optional().meta({ description: 'Path in the sandbox -> folder.' }),
  files: z.record(Absolute, FromFolder).optional().meta({ description: 'Path in the sandbox -> file.' }),
  env,
});
export type OracleSource = z.infer<typeof OracleSource>;
