import { generateKeyPairSync, hash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { fulcioHandler, type HandlerFn, initializeCA, initializeCTLog, initializeTLog } from '@sigstore/mock';

/** A Sigstore of a test: its authority and its log, as the project's own doubles have them, over HTTP. */
export interface SigstoreDouble extends AsyncDisposable {
  /** What `cosign signing-config create` writes for it. */
  signingConfig: object;
  /** What `cosign trusted-root create` writes for it. */
  trustedRoot: object;
  /** The paths that were asked for. */
  requests: string[];
}

export async function sigstoreDouble(): Promise<SigstoreDouble> {
  const key = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const requests: string[] = [];
  const handlers = new Map<string, HandlerFn>();
  const server = createServer(async (request, response) => {
    const path = request.url ?? '';
    requests.push(path);
    const answer = await handlers.get(path)?.(await text(request));
    response.writeHead(answer?.statusCode ?? 404, { 'Content-Type': answer?.contentType ?? 'text/plain' });
    response.end(answer?.response ?? 'there is no such page');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const certificateLog = await initializeCTLog(key());
  const authority = await initializeCA(key(), certificateLog);
  const log = await initializeTLog(url, key());
  const certificates = fulcioHandler(authority, { subjectClaim: 'email' });
  handlers.set(certificates.path, certificates.fn);
  handlers.set('/api/v1/log/entries', async (body) => {
    const response = JSON.stringify(await log.log(keptEntry(JSON.parse(body))));
    return { statusCode: 201, response, contentType: 'application/json' };
  });

  const validFor = { start: new Date(Date.now() - 60_000).toISOString() };
  const logOf = (publicKey: Buffer) => ({
    baseUrl: url,
    hashAlgorithm: 'SHA2_256',
    publicKey: {
      rawBytes: publicKey.toString('base64'),
      keyDetails: 'PKIX_ECDSA_P256_SHA_256',
      validFor,
    },
    logId: { keyId: hash('sha256', publicKey, 'base64') },
  });
  const rootCertificate = Buffer.from(authority.rootCertificate as Uint8Array).toString('base64');
  const service = { url, majorApiVersion: 1, operator: 'test', validFor };
  return {
    signingConfig: {
      mediaType: 'application/vnd.dev.sigstore.signingconfig.v0.2+json',
      caUrls: [service],
      rekorTlogUrls: [service],
    },
    trustedRoot: {
      mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
      certificateAuthorities: [
        {
          subject: { commonName: 'sigstore', organization: 'test' },
          uri: url,
          validFor,
          certChain: { certificates: [{ rawBytes: rootCertificate }] },
        },
      ],
      tlogs: [logOf(log.publicKey)],
      ctlogs: [logOf(certificateLog.publicKey)],
    },
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** What Rekor keeps of an envelope that is sent to it: hashes and signatures. The double would keep all. */
function keptEntry({ apiVersion, kind, spec }: SentEntry): object {
  const { envelope, verifiers } = spec.proposedContent;
  const { payload, signatures } = JSON.parse(envelope) as { payload: string; signatures: { sig: string }[] };
  const digest = (content: string | Buffer) => ({ algorithm: 'sha256', value: hash('sha256', content) });
  return {
    apiVersion,
    kind,
    spec: {
      envelopeHash: digest(envelope),
      payloadHash: digest(Buffer.from(payload, 'base64')),
      signatures: signatures.map(({ sig }, index) => ({ signature: sig, verifier: verifiers[index] })),
    },
  };
}

interface SentEntry {
  apiVersion: string;
  kind: string;
  spec: { proposedContent: { envelope: string; verifiers: string[] } };
}

/** A token as an issuer of accounts makes it. The double does not look at its signature. */
export function tokenOf(email: string, issuer: string, isVerified = true): string {
  const claims = { iss: issuer, sub: email, email, email_verified: isVerified, aud: 'sigstore' };
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part(claims)}.${Buffer.from('signature').toString('base64url')}`;
}
