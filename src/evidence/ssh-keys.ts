import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';

/** Keys of ed25519 in the formats of OpenSSH, which Node does not read. */

const kind = 'ssh-ed25519';
const magic = 'openssh-key-v1\0';
/** PKCS#8 before the 32 bytes of an ed25519 key. */
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The private key in a file of `ssh-keygen`. Throws an error that says what is wrong with it. */
export function sshPrivateKey(text: string): KeyObject {
  const [, base64 = ''] =
    /^\s*-----BEGIN OPENSSH PRIVATE KEY-----([^-]*)-----END OPENSSH PRIVATE KEY-----\s*$/.exec(text) ?? [];
  const file = Buffer.from(base64, 'base64');
  if (file.toString('latin1', 0, magic.length) !== magic) throw new Error('it is damaged');
  const outer = new Fields(file.subarray(magic.length));
  const cipher = outer.next().toString('latin1');
  outer.next();
  outer.next();
  if (outer.number() !== 1) throw new Error('it has several keys');
  outer.next();
  if (cipher !== 'none') throw new Error('it needs a passphrase');
  const inner = new Fields(outer.next());
  const check = inner.number();
  if (inner.number() !== check) throw new Error('it is damaged');
  const type = inner.next().toString('latin1');
  if (type !== kind) throw new Error(`it is a key for ${type.slice(0, 60)}, and one for ed25519 is needed`);
  inner.next();
  // The private half, and the public one again.
  const pair = inner.next();
  if (pair.length !== 64) throw new Error('it is damaged');
  return createPrivateKey({
    key: Buffer.concat([pkcs8, pair.subarray(0, 32)]),
    format: 'der',
    type: 'pkcs8',
  });
}

/** The public keys for ed25519 among the lines of a file as `id_ed25519.pub` or `authorized_keys`. */
export function sshPublicKeys(text: string): KeyObject[] {
  return [...text.matchAll(/^ssh-ed25519 ([A-Za-z0-9+/=]+)(?:\s|$)/gm)].map(([, base64 = '']) => {
    const fields = new Fields(Buffer.from(base64, 'base64'));
    const type = fields.next().toString('latin1');
    const key = fields.next();
    if (type !== kind || key.length !== 32) throw new Error('a line of it is damaged');
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: key.toString('base64url') };
    return createPublicKey({ key: jwk, format: 'jwk' });
  });
}

/** Reads what OpenSSH writes: numbers of four bytes, and strings of bytes after their length. */
class Fields {
  #rest: Buffer;

  constructor(content: Buffer) {
    this.#rest = content;
  }

  number(): number {
    if (this.#rest.length < 4) throw new Error('it is damaged');
    const number = this.#rest.readUInt32BE();
    this.#rest = this.#rest.subarray(4);
    return number;
  }

  next(): Buffer {
    const length = this.number();
    if (this.#rest.length < length) throw new Error('it is damaged');
    const field = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    return field;
  }
}
