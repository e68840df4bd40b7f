import { driverLines } from '../../src/harness/driver-lines.ts';
import {
  accessOfLiteLlm,
  driverCommand,
  driverFiles,
  liteLlmDefaults,
  liteLlmModel,
} from '../../src/harness/python-cli.ts';
import { cliRunner, jsonFile } from '../cli-runner.ts';
import { pythonVersions } from '../versions.ts';

/** mini-swe-agent. */
export const miniSweAgent = cliRunner({
  name: 'mini-swe-agent',
  label: 'mini-swe-agent',
  cli: pythonVersions['mini-swe-agent'],
  wires: ['openai-chat', 'anthropic-messages'],
  continues: true,
  mcp: [],
  limits: ['turns'],
  stream: { takerFor: driverLines },
  launch({ profile, home }, model) {
    const configFile = `${home}/mini-swe-agent.yaml`;
    const settings = {
      // Its prices are not those of the model. Budgets are the gateway's.
      agent: { cost_limit: 0, step_limit: profile.maxTurns },
      model: {
        model_name: liteLlmModel(model),
        cost_tracking: 'ignore_errors',
        model_kwargs: { num_retries: 0, max_retries: 0, max_tokens: model.maxOutputTokens },
      },
    };
    return {
      argv: (sessionId) => [
        ...driverCommand(home, sessionId),
        '--yolo',
        '--exit-immediately',
        ...['--config', 'mini.yaml', '--config', configFile],
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
      files: [...driverFiles(home, new URL('./driver.py', import.meta.url)), jsonFile(configFile, settings)],
    };
  },
});
