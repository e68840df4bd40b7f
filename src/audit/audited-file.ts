import { createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Clock } from '../base/clock.ts';
import { inputError, messageOf } from '../base/offsite-error.ts';
import { type EvidenceSignature, sshPublicKeys } from '../evidence/envelope.ts';
import { type OpenedEvidence, openEvidence } from '../evidence/open-evidence.ts';
import {
  checkSigstore,
  type SigstoreSigner,
  type SigstoreTrust,
  sigstoreTrustOf,
} from '../evidence/sigstore.ts';
import { entryOf } from '../evidence/statement.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { Ledger } from '../ledger/ledger.ts';
import type { Contradiction } from '../record/audit.ts';
import type { Redactor } from '../redaction/redactor.ts';
import type { IsLeftOut } from './evidence-of-trial.ts';
import type { EvidenceProblem } from './intact.ts';

/** A file of evidence, as a batch of a data folder of its own. */
export interface AuditedFile extends Pick<OpenedEvidence, 'commits' | 'images'> {
  ledger: Ledger;
  batch: StoredBatch;
  /** The blob with the definition as its owner sent it. The batch runs a copy that is safe to run. */
  definition: string | undefined;
  /** What is wrong with the file as a whole. */
  problems: EvidenceProblem[];
  isLeftOut: IsLeftOut;
  /** Who signed it, for people. */
  signature: string;
}

/** The owners whom the reader knows. */
export interface TrustedSigners extends SigstoreTrust {
  keys: KeyObject[];
}

interface OpenParts {
  /** A folder that does not exist. The caller removes it. */
  folder: string;
  /** Undefined if the reader names nobody. */
  trusted: TrustedSigners | undefined;
  clock: Clock;
  redactor: Redactor;
  signal: AbortSignal;
}

/** Opens a file of evidence. The caller closes the ledger. Throws as {@link openEvidence} does. */
export async function openAuditedFile(
  file: string,
  { folder, trusted, clock, redactor, signal }: OpenParts,
): Promise<AuditedFile> {
  const opened = await openEvidence(file, folder, { clock, signal, trustedKeys: trusted?.keys });
  const { statement, gone, commits, images, batch: key } = opened;
  const ledger = new Ledger(folder, clock, { redactor, isChecked: false });
  const batch = ledger.batches.byKey(key);
  const problems = [...gone].map(
    ([entry, what]): EvidenceProblem => ({ message: `${entry} ${what}`, isContradiction: true }),
  );
  const signature =
    opened.signature.kind === 'sigstore'
      ? { kind: 'sigstore' as const, ...(await checkSigstore(opened.signature.bundle, trusted)) }
      : opened.signature;
  const wrong = wrongSignature(signature, trusted !== undefined);
  if (wrong) {
    // Whoever reads of a contradiction may think that somebody changed the contents.
    const isWhole = gone.size === 0 && signature.kind !== 'unsigned' && signature.holds !== false;
    const whole = isWhole ? '; the file holds what its statement lists' : '';
    const { found, ...required } = wrong;
    problems.push({ message: `${found}${whole}`, isContradiction: true, required });
  }
  const { contents, batch: carried } = statement.predicate;
  const listed = new Set(contents.map(entryOf));
  const isLeftOut: IsLeftOut = (sha256) => !listed.has(entryOf({ kind: 'blob', sha256 }));
  const definition = carried.plan === undefined || isLeftOut(carried.plan) ? undefined : carried.plan;
  const whole = { ledger, batch, definition, problems, isLeftOut, commits, images };
  return { ...whole, signature: signatureText(signature) };
}

type CheckedSignature =
  | Exclude<EvidenceSignature, { kind: 'sigstore' }>
  | ({ kind: 'sigstore' } & SigstoreSigner);

function wrongSignature(
  signature: CheckedSignature,
  isSomebodyNamed: boolean,
): Omit<Contradiction, 'path'> | undefined {
  const holds = { says: 'its signature holds', expected: 'one of whoever it names' };
  if (signature.kind === 'sigstore' && signature.why !== undefined)
    return { ...holds, found: `its signature of Sigstore does not hold: ${signature.why}` };
  if (signature.kind === 'ed25519' && !signature.holds)
    return { ...holds, found: 'it is not of the key that it names, or its statement was changed since' };
  if (!isSomebodyNamed) return undefined;
  const says = 'somebody of --signed-by signed it';
  if (signature.kind === 'unsigned') return { says, expected: 'a signature', found: 'none' };
  if (signature.isTrusted) return undefined;
  return signature.kind === 'sigstore'
    ? { says, expected: 'an account of --signed-by', found: signature.who }
    : { says, expected: 'a key of --signed-by', found: signature.keyId };
}

function signatureText(signature: CheckedSignature): string {
  if (signature.kind === 'unsigned') return 'NOT SIGNED: anybody may have written it';
  const { kind, holds, isTrusted } = signature;
  const [who, what] = kind === 'sigstore' ? [signature.who, 'account'] : [signature.keyId, 'key'];
  if (holds === false) return `NOT SIGNED by ${who}, which it names: the signature does not hold`;
  if (holds === undefined)
    return `signed by ${who}, as it says: NOT CHECKED; --signed-by IDENTITY=ISSUER checks it with Sigstore`;
  if (isTrusted === false) return `signed by ${who}, which is no ${what} of --signed-by`;
  const asked = '; --signed-by KEY says whether that is the owner’s key';
  return `signed by ${who}${isTrusted === undefined ? asked : `, ${what === 'key' ? 'a' : 'an'} ${what} of --signed-by`}`;
}

/**
 * Reads what `--signed-by` names: files of keys, accounts, and a trusted root of Sigstore. Throws
 * `PUBLIC_KEY_UNREADABLE`, an input error.
 */
export function readTrusted(named: readonly string[]): TrustedSigners {
  const trusted: TrustedSigners = { keys: [], identities: [], root: undefined };
  for (const one of named) {
    const ofSigstore = sigstoreTrustOf(one);
    if (!ofSigstore) trusted.keys.push(...readPublicKeys(one));
    trusted.identities.push(...(ofSigstore?.identities ?? []));
    trusted.root ??= ofSigstore?.root;
  }
  if (trusted.root === undefined || trusted.identities.length > 0) return trusted;
  throw inputError('PUBLIC_KEY_UNREADABLE', '--signed-by has a trusted root of Sigstore, and no account', {
    hint: 'Name one, too: --signed-by you@example.com=https://accounts.google.com trusted_root.json',
  });
}

/**
 * A public key in PEM, or those for ed25519 in a file of OpenSSH. Throws `PUBLIC_KEY_UNREADABLE`, an input
 * error.
 */
export function readPublicKeys(file: string): KeyObject[] {
  try {
    const text = readFileSync(file, 'utf8');
    // Node would take the public half of it.
    if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) throw new Error('it is a private key');
    const ofSsh = sshPublicKeys(text);
    return ofSsh.length > 0 ? ofSsh : [createPublicKey(text)];
  } catch (error) {
    throw inputError('PUBLIC_KEY_UNREADABLE', `${file} is no public key: ${messageOf(error)}`, {
      hint: 'Give a file such as id_ed25519.pub, or a PEM file: openssl pkey -in evidence-key.pem -pubout -out evidence-key.pub.pem',
      cause: error,
    });
  }
}
