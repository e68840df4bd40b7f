import Docker from 'dockerode';
import { clientOf } from '../../scripts/engines/client-of.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { engineSocket } from './engine-socket.ts';

const clients = new WeakMap<Engine, Docker>();

/**
 * A Docker client of the test's own for the engine that `engine` is connected to, to arrange what Offsite
 * never does and to see what it did. Its requests are not counted as the engine's round trips.
 */
export function dockerOf(engine: Engine): Docker {
  const client = clients.get(engine) ?? clientAt(engine.address);
  clients.set(engine, client);
  return client;
}

/** The address is `unix:///path (who named it)`, `tcp://host:port (...)` or `ssh://...`. */
function clientAt(address: string): Docker {
  const [host = ''] = address.split(' ');
  const { protocol, hostname, port, pathname } = new URL(host);
  if (protocol === 'unix:') return clientOf(pathname);
  // The tests reach their engine over ssh or TLS, and this its socket.
  if (process.env.OFFSITE_TEST_SOCKET) return clientOf(engineSocket);
  return new Docker({ host: hostname, port: Number(port), protocol: 'http' });
}
