import { createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Clock } from '../base/clock.ts';
import { inputError, messageOf } from '../base/offsite-error.ts';
import { type EvidenceSignature, sshPublicKeys } from '../evidence/envelope.ts';
import { type OpenedEvidence, openEvidence } from '../evidence/open-evidence.ts';
import { checkSigstore, type SigstoreTrust, sigstoreTrustOf } from '../evidence/sigstore.ts';
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
  const says = 'the file holds what its statement lists';
  const problems = [...gone].map(([entry, what]): EvidenceProblem => {
    return { path: 'evidence', says, expected: 'the same', found: `${entry} ${what}` };
  });
  const { sigstore } = opened;
  const signature = sigstore ? await checkSigstore(sigstore, trusted) : opened.signature;
  const wrong = wrongSignature(signature, trusted !== undefined);
  if (wrong) {
    // Whoever reads of a contradiction may think that somebody changed the contents.
    const isWhole = gone.size === 0 && signature && signature.holds !== false;
    const whole = isWhole ? '; the file holds what its statement lists' : '';
    problems.push({ path: 'signature', ...wrong, found: `${wrong.found}${whole}` });
  }
  const { contents, batch: carried } = statement.predicate;
  const listed = new Set(contents.map(entryOf));
  const isLeftOut: IsLeftOut = (sha256) => !listed.has(entryOf({ kind: 'blob', sha256 }));
  const definition = carried.plan === undefined || isLeftOut(carried.plan) ? undefined : carried.plan;
  const whole = { ledger, batch, definition, problems, isLeftOut, commits, images };
  return { ...whole, signature: signatureText(signature) };
}

function wrongSignature(
  signature: EvidenceSignature | undefined,
  isSomebodyNamed: boolean,
): Omit<Contradiction, 'path'> | undefined {
  if (signature?.why !== undefined)
    return { says: 'its signature holds', expected: 'one of whoever it names', found: signature.why };
  if (!isSomebodyNamed || signature?.isTrusted) return undefined;
  const says = 'somebody of --signed-by signed it';
  if (!signature) return { says, expected: 'a signature', found: 'none' };
  return { says, expected: `${one[signature.of]} of --signed-by`, found: signature.by };
}

const one = { key: 'a key', account: 'an account' };

function signatureText(signature: EvidenceSignature | undefined): string {
  if (!signature) return 'NOT SIGNED: anybody may have written it';
  const { of, by, holds, isTrusted } = signature;
  if (holds === false) return `NOT SIGNED by ${by}, which it names: the signature does not hold`;
  if (holds === undefined)
    return `signed by ${by}, as it says: NOT CHECKED; --signed-by IDENTITY=ISSUER checks it with Sigstore`;
  if (isTrusted === false) return `signed by ${by}, which is no ${of} of --signed-by`;
  if (isTrusted) return `signed by ${by}, ${one[of]} of --signed-by`;
  return `signed by ${by}; --signed-by KEY says whether that is the owner’s key`;
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
