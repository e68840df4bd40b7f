import { cliSession } from '../../src/harness/cli-session.ts';
import { requireModel } from '../../src/harness/require-model.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { versions } from '../versions.ts';
import { copilotCli, copilotInstall } from './configuration.ts';

/** GitHub's Copilot CLI, with a model that the user chooses. */
export const copilot: Runner = {
  name: 'copilot',
  label: 'Copilot CLI',
  cli: versions.copilot,
  wires: ['openai-chat', 'openai-responses', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.copilot/skills',
  limits: [],
  install: (profile) => copilotInstall(profile.version),
  open: (context) => cliSession(context, copilotCli(context, requireModel('Copilot CLI', context))),
};
