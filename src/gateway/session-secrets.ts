import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { ModelRole } from './gateway.ts';
import { allWires } from './wires/wire-table.ts';

/** The secrets of one session, one per role. */
export interface Tokens {
  of(role: ModelRole): string;
  /** The role whose token a request carries; undefined if it carries no token of this session. */
  roleOf(headers: IncomingHttpHeaders): ModelRole | undefined;
}

/** Headers besides `authorization` that may carry a key; `api-key` is Azure's. */
const keyHeaders = ['api-key', ...allWires.map(({ auth }) => auth).filter((name) => name !== 'bearer')];

const roles: readonly ModelRole[] = ['agent', 'user', 'judge'];

export function issueTokens(): Tokens {
  const issued = roles.map((role) => {
    const token = `offsite_${randomBytes(32).toString('base64url')}`;
    return { role, token, bytes: Buffer.from(token) };
  });
  return {
    of(role) {
      const own = issued.find((one) => one.role === role);
      if (!own) throw new RangeError(`there is no role ${role}`);
      return own.token;
    },
    roleOf(headers) {
      const shown = credentialsIn(headers).map((credential) => Buffer.from(credential));
      // All tokens have one length. Timing does not reveal how much of a token was correct.
      const isSame = (one: Buffer, other: Buffer) =>
        one.length === other.length && timingSafeEqual(one, other);
      return issued.find(({ bytes }) => shown.some((one) => isSame(one, bytes)))?.role;
    },
  };
}

/** All credentials in the headers where clients put keys; some clients send two. */
function credentialsIn(headers: IncomingHttpHeaders): string[] {
  const bearer = /^bearer +(\S+)$/i.exec(headers.authorization?.trim() ?? '')?.[1];
  return [bearer, ...keyHeaders.map((name) => headers[name])].flat().filter((one) => one !== undefined);
}
