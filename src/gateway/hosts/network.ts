import { lookup } from 'node:dns/promises';
import { connect, type Socket } from 'node:net';
import { abortable } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';

/** Reaches named hosts. Passed in, so that tests send no packets off the machine. */
export interface Network {
  /** All addresses of a name. */
  lookup(host: string): Promise<string[]>;
  /** Resolves with a socket that is connected to exactly this address. */
  connect(to: { address: string; port: number }, signal: AbortSignal): Promise<Socket>;
}

export const hostNetwork: Network = {
  async lookup(host) {
    const found = await lookup(host, { all: true, order: 'verbatim' });
    return found.map(({ address }) => address);
  },
  async connect({ address, port }, signal) {
    signal.throwIfAborted();
    // One end may finish sending before the other.
    const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.once('connect', resolve);
    // An error may come before the caller listens; the caller listens for 'close'.
    socket.on('error', () => undefined).once('error', reject);
    try {
      await abortable(promise, signal);
      return socket;
    } catch (cause) {
      socket.destroy();
      throw new OffsiteError(`cannot connect to ${address} port ${port}`, {
        code: 'HOST_UNREACHABLE',
        kind: 'infrastructure',
        cause,
      });
    } finally {
      socket.off('error', reject);
    }
  },
};
