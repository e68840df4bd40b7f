import type { HarnessContext, HarnessSession } from '../../src/harness/runner.ts';
import type { AcpProgram } from './agent-process.ts';
import type { AcpSession } from './session.ts';

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
