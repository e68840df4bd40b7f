/** The variables in which CI systems give the address of the job or build that runs. */
const addresses = ['CI_JOB_URL', 'BUILDKITE_BUILD_URL', 'CIRCLE_BUILD_URL', 'BUILD_URL'];

/**
 * The address of the CI run that this process is part of, for people who see its batch at the service.
 * Undefined outside CI, and if the address is invalid or contains a user or a password.
 */
export function ciRun(env: NodeJS.ProcessEnv): string | undefined {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository, GITHUB_RUN_ID: id } = env;
  const github = server && repository && id ? `${server}/${repository}/actions/runs/${id}` : undefined;
  const address = github ?? addresses.map((name) => env[name]).find((value) => value);
  const parsed = address === undefined ? null : URL.parse(address);
  if (!parsed || !['http:', 'https:'].includes(parsed.protocol) || parsed.username || parsed.password) {
    return undefined;
  }
  return address;
}
