import { z } from 'zod';
import { McpServer } from './mcp-server.ts';
import { Text } from './text-source.ts';
import { fitsEnvironment, tooLongForEnvironment } from './variables.ts';

/** What a harness is given, and how it is started: `profiles` of `offsite.yaml`. */
export const ProfileConfig = z.strictObject({
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
    .superRefine((env, context) => {
      for (const [name, value] of Object.entries(env))
        if (!fitsEnvironment(name, value))
          context.addIssue({ code: 'custom', path: [name], message: tooLongForEnvironment });
    })
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
        'Whether the harness gets to know how much time and budget it has left: in its environment, and for bash in ' +
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
