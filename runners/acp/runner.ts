import type { HarnessContext, HarnessSession, Runner } from '../../src/harness/runner.ts';
import type { AcpSession } from './session.ts';

/**
 * Any agent that speaks the Agent Client Protocol. The profile's `run` script starts it. Offsite is its client,
 * over its standard streams.
 */
export const acp: Runner = {
  name: 'acp',
  label: 'Agent Client Protocol (a profile with a run script)',
  // The program may be anything, also an agent without a model.
  wires: [],
  runsScript: true,
  tellsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  limits: [],
  open: (context) => lazySession(context),
};

/** Loads the protocol's library with the first turn. */
function lazySession(context: HarnessContext): HarnessSession {
  let session: AcpSession | undefined;
  return {
    get commandsFrom() {
      return session?.commandsFrom;
    },
    async turn(message, limits) {
      if (!session) {
        const { AcpSession } = await import('./session.ts');
        session = new AcpSession(context);
      }
      return session.turn(message, limits);
    },
    end: async () => session?.end(),
  };
}
