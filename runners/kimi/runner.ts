import { npmInstall, programPath } from '../../src/harness/npm-cli.ts';
import {
  type HarnessContext,
  type ModelAccess,
  type Runner,
  requireModel,
} from '../../src/harness/runner.ts';
import { acpSession } from '../acp/runner.ts';
import type { AcpProgram } from '../acp/terminals.ts';
import { serverPatience } from '../cli-runner.ts';
import { versions } from '../versions.ts';

/** Kimi Code. Without a terminal, it takes prompts on stdin only over the Agent Client Protocol. */
export const kimi: Runner = {
  name: 'kimi',
  label: 'Kimi Code',
  cli: versions.kimi,
  wires: ['openai-chat', 'anthropic-messages'],
  reportsCommands: true,
  reportsModelFailure: false,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  startsWithoutServers: true,
  skillsFolder: '~/.agents/skills',
  limits: [],
  install: (profile) => npmInstall(versions.kimi, profile.version),
  open(context) {
    const model = requireModel('Kimi Code', context);
    return acpSession(context, () => kimiProgram(context, model));
  },
};

/** The context window, in tokens, of a model whose configuration does not name one. */
const defaultContextWindow = 100_000;

function kimiProgram({ profile, env, home, workspace }: HarnessContext, model: ModelAccess): AcpProgram {
  // Kimi Code puts a `cd` to its working folder before each command.
  const goingThere = `cd '${workspace.replaceAll("'", `'\\''`)}' && `;
  return {
    argv: [programPath(versions.kimi), ...profile.args, 'acp'],
    env: {
      KIMI_CODE_HOME: `${home}/kimi`,
      KIMI_CODE_NO_AUTO_UPDATE: '1',
      KIMI_DISABLE_TELEMETRY: '1',
      KIMI_MCP_STARTUP_TIMEOUT_MS: String(serverPatience),
      ...env,
      ...modelVariables(model),
    },
    commandOf: (line) => (line.startsWith(goingThere) ? line.slice(goingThere.length) : line),
  };
}

function modelVariables({ name, wire, origin, token, ...limits }: ModelAccess): Record<string, string> {
  const isAnthropic = wire === 'anthropic-messages';
  return {
    KIMI_MODEL_NAME: name,
    KIMI_MODEL_API_KEY: token,
    KIMI_MODEL_PROVIDER_TYPE: isAnthropic ? 'anthropic' : 'openai',
    KIMI_MODEL_BASE_URL: isAnthropic ? origin : `${origin}/v1`,
    KIMI_MODEL_MAX_CONTEXT_SIZE: String(limits.contextWindow ?? defaultContextWindow),
    ...(limits.maxOutputTokens !== undefined && {
      KIMI_MODEL_MAX_OUTPUT_SIZE: String(limits.maxOutputTokens),
    }),
  };
}
