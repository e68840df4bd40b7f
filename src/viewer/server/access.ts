import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** Decides who may read: those who have the token. */
export class Access {
  readonly token = randomBytes(24).toString('base64url');
  readonly #used = Promise.withResolvers<void>();
  /** Resolves when the token is used for the first time. */
  readonly used = this.#used.promise;

  /** Whether a request carries the token. */
  isGranted(request: Request): boolean {
    const isGranted = isSame(bearerOf(request), this.token);
    if (isGranted) this.#used.resolve();
    return isGranted;
  }
}

function bearerOf(request: Request): string {
  return /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '')?.[1] ?? '';
}

/** Compares in constant time, so that the time does not reveal how much of a guess is right. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

const digest = (text: string) => createHash('sha256').update(text).digest();
