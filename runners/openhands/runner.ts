import { cliSession } from '../../src/harness/cli-session.ts';
import { pythonInstall } from '../../src/harness/python-cli.ts';
import { requireModel } from '../../src/harness/require-model.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { pythonVersions } from '../versions.ts';
import { openhandsCli } from './configuration.ts';

const cli = pythonVersions.openhands;

/** OpenHands. */
export const openhands: Runner = {
  name: 'openhands',
  label: 'OpenHands',
  cli,
  wires: ['openai-chat', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.agents/skills',
  limits: ['turns'],
  install: (profile) => pythonInstall(cli, profile.version),
  open: (context) => cliSession(context, openhandsCli(context, requireModel('OpenHands', context))),
};
