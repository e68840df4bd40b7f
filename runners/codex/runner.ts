import { cliSession } from '../../src/harness/cli-session.ts';
import { npmInstall } from '../../src/harness/npm-cli.ts';
import { requireModel } from '../../src/harness/require-model.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { versions } from '../versions.ts';
import { codexCli } from './configuration.ts';

/** OpenAI's Codex CLI. */
export const codex: Runner = {
  name: 'codex',
  label: 'Codex CLI',
  cli: versions.codex,
  wires: ['openai-responses'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http'],
  skillsFolder: '~/.agents/skills',
  limits: [],
  install: (profile) => npmInstall(versions.codex, profile.version),
  open: (context) => cliSession(context, codexCli(context, requireModel('Codex', context))),
};
