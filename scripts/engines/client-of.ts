import Docker from 'dockerode';

/**
 * A client of the engine at a socket, whatever engine the environment names: DOCKER_HOST would win over the
 * socket, and DOCKER_TLS_VERIFY have the client speak TLS, were they not overruled.
 */
export function clientOf(socketPath: string): Docker {
  return new Docker({ socketPath, host: undefined, protocol: 'http' });
}
