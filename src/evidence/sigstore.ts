import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import {
  infrastructureError,
  inputError,
  messageOf,
  OffsiteError,
  withPackage,
} from '../base/offsite-error.ts';
import { parseForeignJson } from '../base/parse-json.ts';
import { type EvidenceSignature, keySigning, type Signing } from './envelope.ts';
import { payloadType } from './statement.ts';

/**
 * Sigstore: an account signs, and no key is kept. A certificate authority (Fulcio) makes a certificate for a
 * token of the account, and a public log (Rekor) has the time. Its packages are optional, and nothing of it
 * is reached unless somebody names it.
 */

/** Milliseconds; a statement of thousands of trials is sent as a whole. */
const answerWithin = 60_000;

/** Who the reader trusts, and by which authorities. */
export interface SigstoreTrust {
  identities: { identity: string; issuer: string }[];
  /** A trusted root as a file has it; undefined for that of the public Sigstore, which is fetched. */
  root: unknown;
}

const Service = z.object({ url: z.url(), majorApiVersion: z.int() });
/** What `cosign` and others read, too: where the services of a Sigstore are. */
const SigningConfig = z.object({
  mediaType: z.string().startsWith('application/vnd.dev.sigstore.signingconfig.v0.2'),
  caUrls: z.array(Service),
  rekorTlogUrls: z.array(Service),
  tsaUrls: z.array(Service).default([]),
});

/**
 * Signs with what a user names: a file with a key, `sigstore` for the public one, or a file with the
 * addresses of another Sigstore. Throws input errors.
 */
export async function signingWith(named: string): Promise<Signing> {
  if (named === 'sigstore') return sigstoreSigning({});
  const text = textOf(named);
  if (!text?.trimStart().startsWith('{')) return keySigning(named);
  const config = SigningConfig.safeParse(jsonIn(named, text));
  const urlIn = (services: z.infer<typeof Service>[] = []) =>
    services.find(({ majorApiVersion }) => majorApiVersion === 1)?.url;
  const [fulcioURL, rekorURL] = [urlIn(config.data?.caUrls), urlIn(config.data?.rekorTlogUrls)];
  const tsaServerURL = urlIn(config.data?.tsaUrls);
  if (fulcioURL !== undefined && rekorURL !== undefined)
    return sigstoreSigning({ fulcioURL, rekorURL, ...(tsaServerURL !== undefined && { tsaServerURL }) });
  const [issue] = config.error?.issues ?? [];
  const why = issue ? `${issue.path.join('.')}: ${issue.message}` : 'it has no Fulcio and Rekor of version 1';
  const hint = 'Give `sigstore` for the public one, or a file as `cosign signing-config create` writes it.';
  throw unreadable(`${named} is no signing config of Sigstore: ${why}`, hint);
}

interface Services {
  fulcioURL?: string;
  rekorURL?: string;
  tsaServerURL?: string;
}

async function sigstoreSigning(services: Services): Promise<Signing> {
  const { attest } = await withPackage(optional, () => import('sigstore'));
  let by = 'an account';
  return {
    signer: undefined,
    by: () => by,
    async wrap(payload) {
      try {
        const bundle = await attest(payload, payloadType, { ...services, timeout: answerWithin });
        by = claimedBy(bundle);
        return bundle;
      } catch (error) {
        // The message of a wrong token repeats it.
        const { code, cause } = error as { code?: unknown; cause?: unknown };
        const isOfToken = String(code).startsWith('IDENTITY_TOKEN');
        const why = isOfToken ? messageOf(cause ?? 'no token') : messageOf(error);
        throw new OffsiteError(`Sigstore did not sign the evidence: ${why}`, {
          code: 'SIGSTORE_FAILED',
          kind: isOfToken ? 'input' : 'infrastructure',
          hint: 'It needs a token of your account for the audience `sigstore`: in GitHub Actions `permissions: { id-token: write }`, elsewhere the variable SIGSTORE_ID_TOKEN. Or sign with a key: --sign-with FILE.',
          ...(!isOfToken && { cause: error }),
        });
      }
    },
  };
}

/** Whether the certificate of a bundle is of one of the identities, and signed what is in it. */
export async function checkSigstore(
  bundle: unknown,
  trust: SigstoreTrust | undefined,
): Promise<EvidenceSignature> {
  const claimed = { of: 'account', by: claimedBy(bundle) } as const;
  const isAsked = trust !== undefined && trust.identities.length > 0;
  if (!isAsked) return { ...claimed, holds: undefined, isTrusted: undefined };
  const verify = await verifierOf(trust.root);
  try {
    const { identity } = verify(bundle);
    const [name, issuer] = [identity?.subjectAlternativeName, identity?.extensions?.issuer];
    if (name === undefined || issuer === undefined) throw new Error('its certificate names no account');
    // The packages would take a name for a pattern.
    const isTrusted = trust.identities.some((one) => one.identity === name && one.issuer === issuer);
    return { ...claimed, by: `${name} (${issuer})`, holds: true, isTrusted };
  } catch (error) {
    const why = `its signature of Sigstore does not hold: ${messageOf(error)}`;
    return { ...claimed, holds: false, isTrusted: false, why };
  }
}

async function verifierOf(root: unknown) {
  if (root === undefined) {
    const { createVerifier } = await withPackage(optional, () => import('sigstore'));
    try {
      const { verify } = await createVerifier({ timeout: answerWithin });
      return (bundle: unknown) => verify(bundle as Parameters<typeof verify>[0]);
    } catch (error) {
      throw infrastructureError(
        'SIGSTORE_FAILED',
        `the trusted root of Sigstore cannot be fetched: ${messageOf(error)}`,
        { hint: 'Give it as a file: --signed-by IDENTITY=ISSUER trusted_root.json', cause: error },
      );
    }
  }
  const [{ bundleFromJSON }, { TrustedRoot }, { toSignedEntity, toTrustMaterial, Verifier }] =
    await withPackage(optional, () =>
      Promise.all([
        import('@sigstore/bundle'),
        import('@sigstore/protobuf-specs'),
        import('@sigstore/verify'),
      ]),
    );
  try {
    const verifier = new Verifier(toTrustMaterial(TrustedRoot.fromJSON(root)));
    return (bundle: unknown) => verifier.verify(toSignedEntity(bundleFromJSON(bundle)));
  } catch (error) {
    const hint = 'Give a file such as trusted_root.json of `cosign trusted-root create`.';
    throw unreadable(`the trusted root of --signed-by cannot be used: ${messageOf(error)}`, hint, error);
  }
}

/** Whom the certificate in a bundle names. Anybody can write one. */
function claimedBy(bundle: unknown): string {
  const { verificationMaterial: material } = (bundle ?? {}) as { verificationMaterial?: unknown };
  const { certificate } = (material ?? {}) as { certificate?: { rawBytes?: unknown } };
  try {
    const { subjectAltName } = new X509Certificate(Buffer.from(String(certificate?.rawBytes), 'base64'));
    return subjectAltName?.replace(/^(email|URI):/, '') ?? 'an account';
  } catch {
    return 'an account';
  }
}

/** Reads what a reader trusts of Sigstore; undefined for a file of keys. */
export function sigstoreTrustOf(named: string): Partial<SigstoreTrust> | undefined {
  const [, identity, issuer] = /^(.+)=(https?:\/\/[^=\s]+)$/.exec(named) ?? [];
  if (identity !== undefined && issuer !== undefined) return { identities: [{ identity, issuer }] };
  const text = textOf(named);
  return text?.trimStart().startsWith('{') ? { root: jsonIn(named, text) } : undefined;
}

function jsonIn(file: string, text: string): unknown {
  try {
    return parseForeignJson(text);
  } catch (error) {
    throw unreadable(`${file} is no JSON: ${messageOf(error)}`, 'Give the file as Sigstore wrote it.', error);
  }
}

function unreadable(message: string, hint: string, cause?: unknown): OffsiteError {
  return inputError('SIGSTORE_FILE_UNREADABLE', message, { hint, cause });
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

const optional = {
  named: 'sigstore',
  code: 'SIGSTORE_MISSING',
  install: 'sigstore',
  needs: 'signatures of Sigstore need its packages',
};
