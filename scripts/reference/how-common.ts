/** How common a key is in the files that people write. What no list has is `sometimes`. */
export interface HowCommon {
  common: readonly string[];
  /** These keys, and all below them. */
  rare: readonly string[];
}

export const suiteKeys: HowCommon = {
  common: [
    ...['suite', 'suite.id', 'suite.prompt', 'trials', 'environment', 'variants', 'variants[].name'],
    ...['variants[].model', 'variants[].harness', 'cases', 'cases[].id', 'cases[].name', 'cases[].variables'],
    ...['cases[].prepare', 'cases[].verify', 'cases[].checks', 'cases[].judge', 'cases[].environment'],
    ...['cases[].checks[].file', 'cases[].checks[].contains', 'cases[].checks[].run', 'cases[].judge.rubric'],
    ...['cases[].judge.threshold', 'cases[].judge.model', 'environment.image', 'environment.build'],
    ...['environment.files', 'environment.folders', 'environment.env'],
  ],
  rare: [
    ...['variants[].userModel', 'cases[].steps', 'cases[].overall', 'cases[].protected', 'cases[].agent'],
    ...['cases[].artifactsExcept', 'cases[].source.history', 'cases[].source.leaveOut', 'source.history'],
    ...['source.leaveOut', 'suite.prompt.channel', 'suite.prompt.version', 'cases[].verify.keep'],
    ...['cases[].verify.ignore', 'cases[].verify.unexpected', 'cases[].validator.manifest'],
    ...[
      'cases[].validator.capture',
      'cases[].validator.onError',
      'cases[].judge.votes',
      'cases[].tests.rewards',
    ],
    ...['cases[].tests.collect', 'cases[].tests.prints', 'cases[].tests.named', 'cases[].tests.brings'],
    ...['cases[].tests.sealed', 'cases[].tests.patch', 'cases[].tests.restored', 'cases[].tests.hosts'],
    ...['tasks.image', 'tasks.build', 'tasks.test', 'environment.writable', 'environment.hosts'],
    ...['environment.startUp', 'environment.nameForServices', 'environment.needs'],
    ...['environment.services.NAME.memoryFolders', 'environment.services.NAME.volumes'],
    ...['environment.services.NAME.hosts', 'environment.services.NAME.resources'],
  ],
};

export const configurationKeys: HowCommon = {
  common: [
    ...['service', 'service.url', 'models', 'models.NAME.wire', 'models.NAME.baseUrl', 'models.NAME.model'],
    ...['models.NAME.apiKeyEnv', 'models.NAME.prices', 'sandboxes', 'sandboxes.NAME.image', 'profiles'],
    ...['sandboxes.NAME.network', 'sandboxes.NAME.hosts', 'sandboxes.NAME.memory', 'sandboxes.NAME.cpus'],
    ...['profiles.NAME.install', 'profiles.NAME.run', 'concurrency', 'budgets', 'budgets.trial'],
    ...['budgets.batch', 'budgets.trial.usd'],
  ],
  rare: [
    ...[
      'advanced',
      'service.insecureHttp',
      'engines[].certificates',
      'labels',
      'daemon.poll',
      'daemon.judges',
    ],
    ...['fleet.namespace', 'fleet.taskQueue', 'fleet.payloads', 'fleet.codecKeyEnv', 'fleet.heartbeat'],
    ...['fleet.storage.s3.prefix', 'fleet.storage.s3.endpoint', 'fleet.storage.s3.pathStyle'],
    ...['profiles.NAME.stream', 'profiles.NAME.trajectory', 'profiles.NAME.tellDeadline'],
    ...['profiles.NAME.mcpServers.NAME.transport', 'sandboxes.NAME.harnessImage'],
    ...['sandboxes.NAME.testsNetwork', 'sandboxes.NAME.pids', 'sandboxes.NAME.nofile'],
    ...['sandboxes.NAME.runtime', 'sandboxes.NAME.seccomp', 'sandboxes.NAME.remoteAdd', 'models.NAME.auth'],
    ...['models.NAME.query', 'models.NAME.without', 'models.NAME.headersTimeout', 'models.NAME.aliases'],
    ...['models.NAME.requestMembers', 'models.NAME.translation', 'models.NAME.hostedTools'],
  ],
};

/** How common the key at a path is. */
export function howCommon({ common, rare }: HowCommon, path: string): string {
  if (common.includes(path)) return 'common';
  const isBelow = (above: string) => path.startsWith(`${above}.`) || path.startsWith(`${above}[`);
  return rare.some((each) => path === each || isBelow(each)) ? 'rare' : 'sometimes';
}
