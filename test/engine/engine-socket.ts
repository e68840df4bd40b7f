/** The socket of the engine that the tests use: DOCKER_HOST's, or the machine's own. */
export const engineSocket =
  /^unix:\/\/(.+)$/.exec(process.env.DOCKER_HOST ?? '')?.[1] ?? '/var/run/docker.sock';
