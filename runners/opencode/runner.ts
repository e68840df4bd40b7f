import { cliSession } from '../../src/harness/cli-session.ts';
import { npmInstall } from '../../src/harness/npm-cli.ts';
import { requireModel } from '../../src/harness/require-model.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { versions } from '../versions.ts';
import { opencodeCli } from './configuration.ts';

/** opencode. */
export const opencode: Runner = {
  name: 'opencode',
  label: 'opencode',
  cli: versions.opencode,
  wires: ['openai-chat', 'openai-responses', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.config/opencode/skills',
  limits: [],
  install: (profile) => npmInstall(versions.opencode, profile.version),
  open: (context) => cliSession(context, opencodeCli(context, requireModel('opencode', context))),
};
