import { cliSession } from '../../src/harness/cli-session.ts';
import { npmInstall } from '../../src/harness/npm-cli.ts';
import { requireModel } from '../../src/harness/require-model.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { versions } from '../versions.ts';
import { geminiCli } from './configuration.ts';

/** Google's Gemini CLI. */
export const gemini: Runner = {
  name: 'gemini-cli',
  label: 'Gemini CLI',
  cli: versions['gemini-cli'],
  wires: ['gemini'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.gemini/skills',
  limits: ['turns'],
  install: (profile) => npmInstall(versions['gemini-cli'], profile.version),
  open: (context) => cliSession(context, geminiCli(context, requireModel('Gemini CLI', context))),
};
