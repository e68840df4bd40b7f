import { programEnvironment } from '../../src/harness/cli-launch.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { acpSession } from './session.ts';

/**
 * Any agent that speaks the Agent Client Protocol. The profile's `run` script starts it. Offsite is its
 * client, over its standard streams.
 */
export const acp: Runner = {
  name: 'acp',
  label: 'Agent Client Protocol (a profile with a run script)',
  // The program may be anything, also an agent without a model.
  wires: [],
  runsScript: true,
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  limits: [],
  open(context) {
    const { run = '', args } = context.profile;
    return acpSession(context, () => ({
      argv: ['bash', '-c', run, 'run', ...args],
      env: programEnvironment(context),
      own: { BASH_ENV: '' },
    }));
  },
};
