import { cliSession } from '../../src/harness/cli-session.ts';
import { pythonInstall } from '../../src/harness/python-cli.ts';
import { requireModel } from '../../src/harness/require-model.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { pythonVersions } from '../versions.ts';
import { aiderCli } from './configuration.ts';

/** aider. Its model calls no tools: it writes edits into its answers. */
export const aider: Runner = {
  name: 'aider',
  label: 'aider',
  cli: pythonVersions.aider,
  wires: ['openai-chat', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: [],
  limits: [],
  install: (profile) => pythonInstall(pythonVersions.aider, profile.version),
  open: (context) => cliSession(context, aiderCli(context, requireModel('aider', context))),
};
