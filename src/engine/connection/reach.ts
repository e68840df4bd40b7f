import { OffsiteError } from '../../base/offsite-error.ts';
import type { EngineAddress, EngineCandidate } from './address.ts';
import { forwardOverSsh, type ReachOptions } from './ssh-forward.ts';

export interface ReachedEngine {
  address: EngineAddress;
  /** Why a request failed, if the forwarding can tell. */
  failure(): Promise<OffsiteError | undefined>;
  /** Stops the forwarding, if there is one. */
  close(): Promise<void>;
}

/** Turns a candidate's URL into an address to connect to; for `ssh://` this starts the forwarding. */
export async function reach(candidate: EngineCandidate, options: ReachOptions): Promise<ReachedEngine> {
  const { host, tls } = candidate;
  const direct = { failure: async () => undefined, close: async () => undefined };
  // Do not use the URL parser here: it does not know pipes and would decode the path.
  const path = /^(?:unix|npipe):\/\/(.+)$/.exec(host)?.[1];
  if (path !== undefined) return { address: { kind: 'socket', path }, ...direct };

  const url = URL.canParse(host) ? new URL(host) : undefined;
  switch (url?.hostname ? url.protocol : undefined) {
    case 'tcp:':
    case 'http:':
    case 'https:': {
      const secure = tls !== undefined || url?.protocol === 'https:';
      const port = Number(url?.port || (secure ? 2376 : 2375));
      const hostname = (url?.hostname ?? '').replace(/^\[|\]$/g, '');
      return {
        address: secure
          ? { kind: 'https', host: hostname, port, tls: tls ?? {} }
          : { kind: 'http', host: hostname, port },
        ...direct,
      };
    }
    case 'ssh:': {
      const forward = await forwardOverSsh(url as URL, options);
      return { ...forward, address: { kind: 'socket', path: forward.socketPath } };
    }
    default:
      throw new OffsiteError(`Not an engine's address: ${host} (${candidate.source})`, {
        code: 'ENGINE_BAD_ADDRESS',
        kind: 'input',
        hint: 'Write unix:///path, tcp://host:port or ssh://user@host.',
      });
  }
}
