import Docker from 'dockerode';

/**
 * A client of the engine at a socket, whatever engine the environment names. Without these options,
 * DOCKER_HOST would override the socket, and DOCKER_TLS_VERIFY would make the client use TLS.
 */
export function clientOf(socketPath: string): Docker {
  return new Docker({ socketPath, host: undefined, protocol: 'http' });
}
