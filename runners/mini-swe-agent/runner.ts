import { type Cli, cliSession } from '../../src/harness/cli-session.ts';
import { driverLines } from '../../src/harness/driver-lines.ts';
import {
  accessOfLiteLlm,
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

const cli = pythonVersions['mini-swe-agent'];

/** mini-swe-agent. */
export const miniSweAgent: Runner = {
  name: 'mini-swe-agent',
  label: 'mini-swe-agent',
  cli,
  wires: ['openai-chat', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: [],
  limits: ['turns'],
  install: (profile) => pythonInstall(cli, profile.version),
  open: (context) => cliSession(context, miniSweAgentCli(context, requireModel('mini-swe-agent', context))),
};

function miniSweAgentCli({ profile, home }: HarnessContext, model: ModelAccess): Cli {
  const configFile = `${home}/mini-swe-agent.yaml`;
  return {
    label: 'mini-swe-agent',
    argv: (sessionId) => [
      ...driverCommand(home, sessionId),
      '--yolo',
      '--exit-immediately',
      '--config',
      'mini.yaml',
      '--config',
      configFile,
      ...profile.args,
    ],
    defaults: {
      ...liteLlmDefaults,
      // Without this, mini-swe-agent asks for a model and a key.
      MSWEA_CONFIGURED: 'true',
      MSWEA_SILENT_STARTUP: '1',
      MSWEA_GLOBAL_CONFIG_DIR: home,
      // The gateway retries.
      MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT: '1',
    },
    access: accessOfLiteLlm(model),
    files: [
      ...driverFiles(home, new URL('./driver.py', import.meta.url)),
      { path: configFile, content: JSON.stringify(settings(model, profile.maxTurns)) },
    ],
    versionFile: pythonVersionFile(pythonVersions['mini-swe-agent']),
    takerFor: driverLines,
    usageIsCumulative: false,
  };
}

function settings(model: ModelAccess, maxTurns: number | undefined): unknown {
  return {
    // Its prices are not those of the model. Budgets are the gateway's.
    agent: { cost_limit: 0, ...(maxTurns !== undefined && { step_limit: maxTurns }) },
    model: {
      model_name: liteLlmModel(model),
      cost_tracking: 'ignore_errors',
      model_kwargs: {
        num_retries: 0,
        max_retries: 0,
        ...(model.maxOutputTokens !== undefined && { max_tokens: model.maxOutputTokens }),
      },
    },
  };
}
