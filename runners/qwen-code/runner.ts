import { cliSession } from '../../src/harness/cli-session.ts';
import { npmInstall } from '../../src/harness/npm-cli.ts';
import { requireModel } from '../../src/harness/require-model.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { versions } from '../versions.ts';
import { qwenCodeCli } from './configuration.ts';

/** Qwen Code. */
export const qwenCode: Runner = {
  name: 'qwen-code',
  label: 'Qwen Code',
  cli: versions['qwen-code'],
  wires: ['openai-chat', 'openai-responses', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.qwen/skills',
  limits: ['turns'],
  install: (profile) => npmInstall(versions['qwen-code'], profile.version),
  open: (context) => cliSession(context, qwenCodeCli(context, requireModel('Qwen Code', context))),
};
