import Docker from 'dockerode';
import type { Engine } from '../../src/engine/engine.ts';

const clients = new WeakMap<Engine, Docker>();

/**
 * A Docker client of the test's own for the engine that `engine` is connected to, to arrange what Offsite
 * never does and to see what it did. Its requests are not counted as the engine's round trips.
 */
export function dockerOf(engine: Engine): Docker {
  const client = clients.get(engine) ?? new Docker(optionsOf(engine.address));
  clients.set(engine, client);
  return client;
}

/** The address is `unix:///path (who named it)`, or `tcp://host:port (...)`. */
function optionsOf(address: string): Docker.DockerOptions {
  const [host = ''] = address.split(' ');
  const { protocol, hostname, port, pathname } = new URL(host);
  // DOCKER_HOST would win over the socket, were `host` not there to overrule it.
  if (protocol === 'unix:') return { socketPath: pathname, host: undefined };
  return { host: hostname, port: Number(port), protocol: 'http' };
}
