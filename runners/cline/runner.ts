import { cliSession } from '../../src/harness/cli-session.ts';
import { npmInstall } from '../../src/harness/npm-cli.ts';
import { requireModel } from '../../src/harness/require-model.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { versions } from '../versions.ts';
import { clineCli } from './configuration.ts';

/** Cline. With `--json`, it takes no second message. */
export const cline: Runner = {
  name: 'cline',
  label: 'Cline',
  cli: versions.cline,
  // On other wires, it asks for tools that the model's provider would run, which the gateway refuses.
  wires: ['openai-chat'],
  reportsCommands: true,
  continues: false,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.agents/skills',
  limits: [],
  install: (profile) => npmInstall(versions.cline, profile.version),
  open: (context) => cliSession(context, clineCli(context, requireModel('Cline', context))),
};
