import { mcpEntry } from '../../src/harness/cli-launch.ts';
import { type Cli, cliSession } from '../../src/harness/cli-session.ts';
import { driverLines } from '../../src/harness/driver-lines.ts';
import {
  driverCommand,
  driverFiles,
  liteLlmDefaults,
  liteLlmModel,
  pythonInstall,
  pythonVersionFile,
} from '../../src/harness/python-cli.ts';
import {
  type HarnessContext,
  type ModelAccess,
  type Runner,
  requireModel,
} from '../../src/harness/runner.ts';
import { pythonVersions } from '../versions.ts';

const cli = pythonVersions.openhands;

/** OpenHands. */
export const openhands: Runner = {
  name: 'openhands',
  label: 'OpenHands',
  cli,
  wires: ['openai-chat', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.agents/skills',
  limits: ['turns'],
  install: (profile) => pythonInstall(cli, profile.version),
  open: (context) => cliSession(context, openhandsCli(context, requireModel('OpenHands', context))),
};

function openhandsCli({ profile, home }: HarnessContext, model: ModelAccess): Cli {
  const ownFolder = `${home}/openhands`;
  const servers = Object.entries(profile.mcpServers).map(([name, server]) => [name, mcpEntry(server)]);
  return {
    label: 'OpenHands',
    argv: (sessionId) => [
      ...driverCommand(home, sessionId),
      JSON.stringify(settings(model, profile.maxTurns)),
      ...profile.args,
    ],
    defaults: {
      ...liteLlmDefaults,
      OPENHANDS_SUPPRESS_BANNER: '1',
      // Its terminal is not one that a person sees.
      TTY_INTERACTIVE: '1',
    },
    access: {
      OPENHANDS_PERSISTENCE_DIR: ownFolder,
      LLM_MODEL: liteLlmModel(model),
      LLM_BASE_URL: model.wire === 'anthropic-messages' ? model.origin : `${model.origin}/v1`,
      LLM_API_KEY: model.token,
    },
    files: [
      ...driverFiles(home, new URL('./driver.py', import.meta.url)),
      {
        path: `${ownFolder}/mcp.json`,
        content: JSON.stringify({ mcpServers: Object.fromEntries(servers) }),
      },
    ],
    versionFile: pythonVersionFile(pythonVersions.openhands),
    takerFor: driverLines,
    usageIsCumulative: false,
  };
}

/** For the driver. */
function settings({ contextWindow, maxOutputTokens }: ModelAccess, turns: number | undefined): unknown {
  return {
    llm: {
      ...(contextWindow !== undefined && { max_input_tokens: contextWindow }),
      ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
    },
    ...(turns !== undefined && { turns }),
  };
}
