import { cliSession } from '../../src/harness/cli-session.ts';
import { pythonInstall } from '../../src/harness/python-cli.ts';
import { requireModel } from '../../src/harness/require-model.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { pythonVersions } from '../versions.ts';
import { miniSweAgentCli } from './configuration.ts';

const cli = pythonVersions['mini-swe-agent'];

/** mini-swe-agent. */
export const miniSweAgent: Runner = {
  name: 'mini-swe-agent',
  label: 'mini-swe-agent',
  cli,
  wires: ['openai-chat', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: [],
  limits: ['turns'],
  install: (profile) => pythonInstall(cli, profile.version),
  open: (context) => cliSession(context, miniSweAgentCli(context, requireModel('mini-swe-agent', context))),
};
