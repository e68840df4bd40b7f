import { npmInstall } from '../../src/harness/npm-cli.ts';
import { requireModel } from '../../src/harness/require-model.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { acpSession } from '../acp/lazy-session.ts';
import { versions } from '../versions.ts';
import { kimiProgram } from './configuration.ts';

/** Kimi Code. Without a terminal, it takes prompts on stdin only over the Agent Client Protocol. */
export const kimi: Runner = {
  name: 'kimi',
  label: 'Kimi Code',
  cli: versions.kimi,
  wires: ['openai-chat', 'anthropic-messages'],
  reportsCommands: true,
  reportsModelFailure: false,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.agents/skills',
  limits: [],
  install: (profile) => npmInstall(versions.kimi, profile.version),
  open(context) {
    const model = requireModel('Kimi Code', context);
    return acpSession(context, () => kimiProgram(context, model));
  },
};
