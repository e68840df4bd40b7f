import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { ModelRole } from './gateway.ts';
import { allWires } from './wires/wire-table.ts';

/** The secrets of one session, one for each role. */
export interface Tokens {
  of(role: ModelRole): string;
  /** Whose token a request carries; undefined where it carries none of this session's. */
  roleOf(headers: IncomingHttpHeaders): ModelRole | undefined;
}

/** Where a client may put a key beside `authorization`; `api-key` is Azure's. */
const keyHeaders = ['api-key', ...allWires.map(({ auth }) => auth).filter((name) => name !== 'bearer')];

const roles: readonly ModelRole[] = ['agent', 'user', 'judge'];

export function issueTokens(): Tokens {
  const issued = roles.map((role) => {
    const token = `offsite_${randomBytes(32).toString('base64url')}`;
    return { role, token, digest: digestOf(token) };
  });
  return {
    of(role) {
      const own = issued.find((one) => one.role === role);
      if (!own) throw new RangeError(`there is no role ${role}`);
      return own.token;
    },
    roleOf(headers) {
      const shown = credentialsIn(headers).map(digestOf);
      // Digests are of one length and tell nothing of how much of a token was right.
      return issued.find(({ digest }) => shown.some((one) => timingSafeEqual(one, digest)))?.role;
    },
  };
}

/** Whatever the wires' clients put where a key goes; some send two. */
function credentialsIn(headers: IncomingHttpHeaders): string[] {
  const bearer = /^bearer +(\S+)$/i.exec(headers.authorization?.trim() ?? '')?.[1];
  return [bearer, ...keyHeaders.map((name) => headers[name])].flat().filter((one) => one !== undefined);
}

function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
