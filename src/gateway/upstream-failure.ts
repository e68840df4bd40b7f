import { isLoopback } from '../base/foreign-traffic.ts';
import { codesOf, failureText, OffsiteError } from '../base/offsite-error.ts';
import { Redactor, shortest } from '../redaction/redactor.ts';
import { needlesOf } from '../redaction/scanner.ts';

/** Keeps a key out of everything that leaves the gateway. */
export interface Redaction extends Pick<Redactor, 'text' | 'stream'> {
  /** Whether a name contains the key, in any case: header names arrive in lower case. */
  isIn(name: string): boolean;
}

export function redactionOf(key: string | undefined): Redaction {
  const keys = key === undefined ? [] : [key];
  const redactor = new Redactor(keys, { shortest: shortest.answered });
  const names = keys
    .filter(({ length }) => length >= shortest.answered)
    .flatMap(needlesOf)
    .map(({ bytes, least }) => bytes.subarray(0, least).toString('latin1').toLowerCase());
  return {
    text: (text) => redactor.text(text),
    stream: () => redactor.stream(),
    isIn: (name) => names.some((written) => name.toLowerCase().includes(written)),
  };
}

/** A kind of failure, by the codes that Node, OpenSSL and undici use for it. */
interface FailureKind {
  codes: RegExp;
  hint: string;
  /** Whether it lasts until somebody changes something, so that no retry helps. */
  isPermanent?: true;
}

/** The first that fits is used. The names of OpenSSL's certificate errors have no common form. */
const kinds: readonly FailureKind[] = [
  { codes: /^ECONNREFUSED$/, hint: 'Check that it is running there, and its baseUrl.' },
  { codes: /^ENOTFOUND$/, hint: 'Check the host name of its baseUrl, and the network.' },
  { codes: /^EAI_AGAIN$/, hint: 'Check the network: DNS lookups fail.' },
  { codes: /^UND_ERR_HEADERS_TIMEOUT$/, hint: 'Its headersTimeout in offsite.yaml may be too short.' },
  {
    codes: /ALTNAME|HOSTNAME_MISMATCH/,
    hint: 'Its certificate is for other names: set baseUrl to one of these.',
    isPermanent: true,
  },
  {
    codes: /^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/,
    hint: 'Its certificate is not valid at this time: check the clock of this machine, or renew the certificate.',
    isPermanent: true,
  },
  {
    codes: /^CERT_REVOKED$/,
    hint: 'Its certificate was revoked: the server needs another one.',
    isPermanent: true,
  },
  {
    codes: /^ERR_SSL_.*(CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|BAD_CERTIFICATE)$/,
    hint: 'The server may want a certificate of its client, which Offsite does not send: put a proxy in between.',
    isPermanent: true,
  },
  {
    codes: /SELF_SIGNED|^UNABLE_TO_|ISSUER|^(CERT|INVALID|PATH_LENGTH|ERROR_IN_CERT|AKID|KEYUSAGE)_/,
    hint:
      'Set advanced.caBundle in offsite.yaml to its certificate authority: a PEM file with the root, and with the ' +
      'intermediate certificates that the server does not send.',
    isPermanent: true,
  },
  {
    codes: /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/,
    hint: 'Does that port speak plain http?',
    isPermanent: true,
  },
];

/** The codes of failures to find a host, or to connect to it. */
const unconnected = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOST|ENET|UND_ERR_CONNECT_TIMEOUT)/;

/** The connection to a model's API failed. */
export class UpstreamFailure extends OffsiteError {
  readonly isPermanent: boolean;
  /** Whether this machine says that none of its programs listens there. */
  readonly nobodyListens: boolean;
  /** Whether no connection was opened, so that the server has seen nothing of the request. */
  readonly isUnconnected: boolean;

  /**
   * Does not keep the error itself: undici attaches headers and bytes of the answer to some errors, and both
   * may contain the key.
   */
  constructor(origin: string, thrown: unknown, redaction: Redaction) {
    const codes = codesOf(thrown);
    const kind = kinds.find((each) => codes.some((code) => each.codes.test(code)));
    const described = redaction.text(failureText(thrown)).slice(0, 300);
    const nobodyListens = codes.includes('ECONNREFUSED') && isLoopback(new URL(origin).hostname);
    const what = nobodyListens ? `nothing listens at ${origin}` : `the connection to ${origin} failed`;
    super(`${what}: ${described}`, {
      code: 'MODEL_UNREACHABLE',
      kind: 'infrastructure',
      hint: kind?.hint ?? 'Check its baseUrl and the network.',
      cause: Object.assign(new Error(described), { code: codes[0] }),
    });
    this.isPermanent = kind?.isPermanent ?? false;
    this.nobodyListens = nobodyListens;
    this.isUnconnected = codes.some((code) => unconnected.test(code));
  }
}
