import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { inputError, messageOf, OffsiteError } from '../base/offsite-error.ts';
import { payloadType, type Statement } from './statement.ts';

/**
 * DSSE envelopes (https://github.com/secure-systems-lab/dsse): a payload with its signatures, which are over
 * the type of the payload and its bytes.
 */
export const Envelope = z.object({
  payload: z.base64(),
  payloadType: z.literal(payloadType),
  signatures: z.array(z.object({ keyid: z.string().optional(), sig: z.base64() })),
});
export type Envelope = z.infer<typeof Envelope>;

const SigstoreBundle = z.object({
  mediaType: z.string().startsWith('application/vnd.dev.sigstore.bundle'),
  dsseEnvelope: Envelope,
});

/** How a statement is signed. */
export interface Signing {
  /** The key, which the statement names. Undefined for no signature. */
  signer: Statement['predicate']['signer'];
  /** Who signs, for people; of an account it is known when it has signed. Undefined for no signature. */
  by(): string | undefined;
  /** The envelope of the statement's bytes with their signature. */
  wrap(payload: Buffer): Promise<object>;
}

export const unsigned: Signing = {
  signer: undefined,
  by: () => undefined,
  wrap: async (payload) => envelopeOf(payload, []),
};

/**
 * Signs with an ed25519 private key, in PEM or in the format of OpenSSH. Throws `SIGNING_KEY_UNREADABLE`, an
 * input error, for anything else.
 */
export function keySigning(file: string): Signing {
  const make = 'Make a key with: openssl genpkey -algorithm ed25519 -out evidence-key.pem';
  const refused = (why: string, cause?: unknown, hint = make) =>
    inputError('SIGNING_KEY_UNREADABLE', `${file} cannot sign evidence: ${why}`, { hint, cause });
  try {
    const text = readFileSync(file, 'utf8');
    // The first line of a key names its format.
    const format = /^\s*-----BEGIN ([A-Z ]+)-----/.exec(text)?.[1];
    if (format === 'ENCRYPTED PRIVATE KEY') throw refused('it needs a passphrase');
    if (format === 'PUBLIC KEY' || /^\s*ssh-\S+ /.test(text))
      throw refused(
        'it is the public half of a key',
        undefined,
        'Name its private half: the file that was made with it, without .pub.',
      );
    const key = format === 'OPENSSH PRIVATE KEY' ? sshPrivateKey(text) : createPrivateKey(text);
    if (key.asymmetricKeyType !== 'ed25519')
      throw refused(`it is a key for ${key.asymmetricKeyType}, and one for ed25519 is needed`);
    const publicKey = createPublicKey(key);
    const keyid = keyIdOf(publicKey);
    return {
      signer: { keyId: keyid, publicKey: spki(publicKey).toString('base64') },
      by: () => keyid,
      async wrap(payload) {
        const sig = sign(null, signedBytes(payload), key).toString('base64');
        return envelopeOf(payload, [{ keyid, sig }]);
      },
    };
  } catch (error) {
    if (error instanceof OffsiteError) throw error;
    throw refused(messageOf(error), error);
  }
}

/** The name of a public key: `SHA256:` and the hash of its SPKI form in base64. */
export function keyIdOf(publicKey: KeyObject): string {
  return `SHA256:${createHash('sha256').update(spki(publicKey)).digest('base64')}`;
}

function spki(publicKey: KeyObject): Buffer {
  return publicKey.export({ format: 'der', type: 'spki' });
}

function envelopeOf(payload: Buffer, signatures: Envelope['signatures']): Envelope {
  return { payloadType, payload: payload.toString('base64'), signatures };
}

/** Who signed a statement, and what is known of that. */
export interface EvidenceSignature {
  of: 'key' | 'account';
  /** The name of the key or of the account, as the statement says it. */
  by: string;
  /** Undefined if nobody asked, which may need the network. */
  holds: boolean | undefined;
  /** Whether the reader named it; undefined if the reader named none. */
  isTrusted: boolean | undefined;
  /** Why it does not hold. */
  why?: string;
}

/**
 * Checks the signature of an envelope against the key that its statement names. Whose key that is, only the
 * reader can know. Undefined if nobody signed it.
 */
export function signatureOf(
  { signatures }: Envelope,
  payload: Buffer,
  { predicate: { signer } }: Statement,
  trustedKeys: readonly KeyObject[] | undefined,
): EvidenceSignature | undefined {
  if (!signer && signatures.length === 0) return undefined;
  const key = signer && publicKeyOf(signer.publicKey);
  const by = key ? keyIdOf(key) : (signer?.keyId ?? signatures[0]?.keyid ?? 'unknown');
  const isBy = ({ sig }: Envelope['signatures'][number]) =>
    key !== undefined && verify(null, signedBytes(payload), key, Buffer.from(sig, 'base64'));
  const holds = by === signer?.keyId && signatures.some(isBy);
  const isTrusted = trustedKeys?.some((trusted) => key !== undefined && keyIdOf(trusted) === by);
  const why = 'it is not of the key that it names, or its statement was changed since';
  return { of: 'key', by, holds, isTrusted, ...(!holds && { why }) };
}

function publicKeyOf(base64: string): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(base64, 'base64'), format: 'der', type: 'spki' });
    return key.asymmetricKeyType === 'ed25519' ? key : undefined;
  } catch {
    return undefined;
  }
}

/** What a signature is over: DSSE's pre-authentication encoding. */
export function signedBytes(payload: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `),
    payload,
  ]);
}

/** What a bundle of evidence begins with: an envelope, or a bundle of Sigstore around one. */
export interface Wrapped {
  envelope: Envelope;
  /** The bundle of Sigstore, as it was read. */
  sigstore: unknown;
}

/** Reads what a bundle begins with. Throws for anything else. */
export function unwrapped(json: unknown): Wrapped {
  const sigstore = SigstoreBundle.safeParse(json);
  if (sigstore.success) return { envelope: sigstore.data.dsseEnvelope, sigstore: json };
  const parsed = Envelope.safeParse(json);
  if (!parsed.success) throw new Error('it is no envelope of a statement');
  return { envelope: parsed.data, sigstore: undefined };
}

/** Keys of ed25519 in the formats of OpenSSH, which Node does not read. */

const kind = 'ssh-ed25519';
const magic = 'openssh-key-v1\0';
/** PKCS#8 before the 32 bytes of an ed25519 key. */
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The private key in a file of `ssh-keygen`. Throws an error that says what is wrong with it. */
function sshPrivateKey(text: string): KeyObject {
  const [, base64 = ''] =
    /^\s*-----BEGIN OPENSSH PRIVATE KEY-----([^-]*)-----END OPENSSH PRIVATE KEY-----\s*$/.exec(text) ?? [];
  const file = Buffer.from(base64, 'base64');
  if (file.toString('latin1', 0, magic.length) !== magic) throw new Error('it is damaged');
  const outer = fieldsOf(file.subarray(magic.length));
  const cipher = outer.next().toString('latin1');
  outer.next();
  outer.next();
  if (outer.number() !== 1) throw new Error('it has several keys');
  outer.next();
  if (cipher !== 'none') throw new Error('it needs a passphrase');
  const inner = fieldsOf(outer.next());
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
    const fields = fieldsOf(Buffer.from(base64, 'base64'));
    const type = fields.next().toString('latin1');
    const key = fields.next();
    if (type !== kind || key.length !== 32) throw new Error('a line of it is damaged');
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: key.toString('base64url') };
    return createPublicKey({ key: jwk, format: 'jwk' });
  });
}

/** Reads what OpenSSH writes: numbers of four bytes, and strings of bytes after their length. */
function fieldsOf(content: Buffer) {
  let end = 0;
  const take = (length: number): Buffer => {
    if (content.length < end + length) throw new Error('it is damaged');
    end += length;
    return content.subarray(end - length, end);
  };
  const number = () => take(4).readUInt32BE();
  return { number, next: () => take(number()) };
}
