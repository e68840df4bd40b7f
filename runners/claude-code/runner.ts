import { cliSession } from '../../src/harness/cli-session.ts';
import { npmInstall } from '../../src/harness/npm-cli.ts';
import { requireModel } from '../../src/harness/require-model.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { versions } from '../versions.ts';
import { claudeCodeCli } from './configuration.ts';

/** Anthropic's Claude Code. */
export const claudeCode: Runner = {
  name: 'claude-code',
  label: 'Claude Code',
  cli: versions['claude-code'],
  wires: ['anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.claude/skills',
  limits: ['turns'],
  install: (profile) => npmInstall(versions['claude-code'], profile.version),
  open: (context) => cliSession(context, claudeCodeCli(context, requireModel('Claude Code', context))),
};
