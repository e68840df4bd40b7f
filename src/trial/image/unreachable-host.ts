import { printedText } from '../../bounds/anyone.ts';

/** How npm, pip, uv, apt, curl, git, Go and Cargo say that they could not reach a host. */
const patterns: readonly RegExp[] = [
  /request to https?:\/\/([^\s/]+)\S* failed/,
  /getaddrinfo (?:ENOTFOUND|EAI_AGAIN) (\S+)/,
  /connect (?:ECONNREFUSED|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH) (\S+)/,
  /HTTPS?ConnectionPool\(host='([^']+)'/,
  /(?:Failed to fetch|error sending request for url)[: (`]+https?:\/\/([^\s/)]+)/,
  /Could not resolve (?:host: )?'?([^\s']+)/,
  /Could not connect to (\S+)/,
  /Failed to connect to (\S+)/,
  /unable to access 'https?:\/\/([^/']+)/,
  /dial tcp: lookup (\S+)/,
];

/** The host that a script could not reach, by what it printed. Undefined if it names none. */
export function unreachableHost(output: string): string | undefined {
  for (const line of output.split('\n')) {
    const read = line.slice(0, printedText.bytes.line);
    for (const pattern of patterns) {
      const host = pattern.exec(read)?.[1]?.replace(/[:;,.)]+$/, '');
      if (host) return host;
    }
  }
  return undefined;
}

/** A text that names such a host and says what to do. Empty if the output names none. */
export function unreachableText(output: string): string {
  const host = unreachableHost(output);
  if (host === undefined) return '';
  return (
    `; it could not reach ${host}: check the network, or name a proxy or a mirror with variables of this ` +
    'machine that the sandbox may see, such as passEnv: [HTTPS_PROXY, NPM_CONFIG_REGISTRY, PIP_INDEX_URL]'
  );
}
