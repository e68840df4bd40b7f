import { OffsiteError } from '../offsite-error.ts';
import type { Redaction } from './redaction.ts';

const hints: Record<string, string> = {
  ECONNREFUSED: 'Check that it is running there, and its baseUrl in offsite.yaml.',
  ENOTFOUND: 'Check the host name of its baseUrl, and the network.',
  EAI_AGAIN: 'Check the network: DNS lookups fail.',
  UND_ERR_HEADERS_TIMEOUT: 'Its headersTimeout in offsite.yaml may be too short.',
  ERR_SSL_WRONG_VERSION_NUMBER: 'Does that port speak plain http?',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'Set caBundle in offsite.yaml to its certificate authority.',
  SELF_SIGNED_CERT_IN_CHAIN: 'Set caBundle in offsite.yaml to its certificate authority.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'Set caBundle in offsite.yaml to its certificate authority.',
};

/** The connection to a model's API failed. */
export class UpstreamFailure extends OffsiteError {
  /**
   * Does not keep the error itself: undici attaches headers and bytes of the answer to some errors, and both
   * may contain the key.
   */
  constructor(origin: string, thrown: unknown, redaction: Redaction) {
    const codes = codesOf(thrown);
    const described = redaction.text(describe(thrown)).slice(0, 300);
    super(`the connection to ${origin} failed: ${described}`, {
      code: 'MODEL_UNREACHABLE',
      kind: 'infrastructure',
      hint:
        codes.map((code) => hints[code]).find((hint) => hint !== undefined) ??
        'Check its baseUrl and the network.',
      cause: Object.assign(new Error(described), { code: codes[0] }),
    });
  }
}

/**
 * All codes of an error, of its causes, and of its inner errors: IPv4 and IPv6 fail as one AggregateError.
 */
function codesOf(thrown: unknown): string[] {
  if (!(thrown instanceof Error)) return [];
  const inner = thrown instanceof AggregateError ? thrown.errors : [];
  const own = 'code' in thrown && typeof thrown.code === 'string' ? [thrown.code] : [];
  return [...own, ...[thrown.cause, ...inner].flatMap(codesOf)];
}

function describe(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown.message) return thrown.message;
  if (thrown instanceof AggregateError) return thrown.errors.map(describe).join('; ');
  return codesOf(thrown)[0] ?? thrown.name;
}
