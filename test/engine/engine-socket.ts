/**
 * The socket of the engine that the tests use: that of `--engine NAME`, DOCKER_HOST's, or the machine's own.
 */
export const engineSocket =
  process.env.OFFSITE_TEST_SOCKET ??
  /^unix:\/\/(.+)$/.exec(process.env.DOCKER_HOST ?? '')?.[1] ??
  '/var/run/docker.sock';
