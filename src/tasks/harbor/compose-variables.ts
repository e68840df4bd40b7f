import { hostLogs, mainImage } from '../compose/interpolate.ts';
import type { EnvironmentTable } from './task-toml.ts';

/** The values that variables in a task's compose file have. */
export function composeVariables(context: string, table: EnvironmentTable): Record<string, string> {
  const memory = table.memory_mb ?? (table.memory === undefined ? undefined : table.memory / 1024 ** 2);
  const literal = Object.entries(table.env).filter(([, value]) => !value.startsWith('${'));
  return {
    ...Object.fromEntries(literal),
    CONTEXT_DIR: context,
    MAIN_IMAGE_NAME: mainImage,
    ...(table.docker_image !== undefined && { PREBUILT_IMAGE_NAME: table.docker_image }),
    TEST_DIR: '/tests',
    ...(table.cpus !== undefined && { CPUS: String(table.cpus) }),
    ...(memory !== undefined && { MEMORY: `${memory}M` }),
    HOST_AGENT_LOGS_PATH: hostLogs,
    HOST_VERIFIER_LOGS_PATH: hostLogs,
    HOST_ARTIFACTS_PATH: hostLogs,
    ENV_AGENT_LOGS_PATH: '/logs/agent',
    ENV_VERIFIER_LOGS_PATH: '/logs/verifier',
    ENV_ARTIFACTS_PATH: '/logs/artifacts',
  };
}
