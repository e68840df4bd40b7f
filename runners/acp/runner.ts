import { programEnvironment } from '../../src/harness/cli-launch.ts';
import type { HarnessContext, HarnessSession, Runner } from '../../src/harness/runner.ts';
import type { AcpSession } from './session.ts';
import type { AcpProgram } from './terminals.ts';

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

/**
 * A conversation with a program that speaks the protocol. The first turn starts the program and loads the
 * protocol's library.
 */
export function acpSession(context: HarnessContext, program: () => AcpProgram): HarnessSession {
  let session: AcpSession | undefined;
  return {
    get commandsFrom() {
      return session?.commandsFrom;
    },
    async turn(message, limits) {
      if (!session) {
        const { AcpSession } = await import('./session.ts');
        session = new AcpSession(context, program());
      }
      return session.turn(message, limits);
    },
    end: async () => session?.end(),
  };
}
