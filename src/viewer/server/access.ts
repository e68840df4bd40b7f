import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** Milliseconds within which a browser has to use a ticket. */
const ticketMs = 60_000;

/**
 * Decides who may read: whoever has the token. A ticket gives the token once. Other users of the machine may
 * read a ticket in the arguments of the program that opens the browser. If one of them uses it first, the
 * browser's page says that it has no access.
 */
export class Access {
  readonly token = randomBytes(24).toString('base64url');
  #ticket: { code: string; until: number } | undefined;

  /** Makes a ticket. The one before it ends. */
  newTicket(now = performance.now()): string {
    const code = randomBytes(24).toString('base64url');
    this.#ticket = { code, until: now + ticketMs };
    return code;
  }

  /** The token for a ticket; undefined if the ticket was used, is too old, or never was one. */
  redeem(request: Request, now = performance.now()): string | undefined {
    const ticket = this.#ticket;
    if (!ticket || now > ticket.until || !isSame(bearerOf(request), ticket.code)) return undefined;
    this.#ticket = undefined;
    return this.token;
  }

  /** Whether a request carries the token. */
  isGranted(request: Request): boolean {
    return isSame(bearerOf(request), this.token);
  }
}

function bearerOf(request: Request): string {
  return /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '')?.[1] ?? '';
}

/** Compares without telling, by its time, how much is the same. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

const digest = (text: string) => createHash('sha256').update(text).digest();
