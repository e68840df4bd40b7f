import { cliSession } from '../../src/harness/cli-session.ts';
import { npmInstall } from '../../src/harness/npm-cli.ts';
import { requireModel } from '../../src/harness/require-model.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { versions } from '../versions.ts';
import { piCli } from './configuration.ts';

/** The coding agent pi. */
export const pi: Runner = {
  name: 'pi',
  label: 'pi',
  cli: versions.pi,
  wires: ['openai-chat', 'openai-responses', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: [],
  skillsFolder: '~/.agents/skills',
  limits: [],
  install: (profile) => npmInstall(versions.pi, profile.version),
  open: (context) => cliSession(context, piCli(context, requireModel('pi', context))),
};
