import { mcpEntry } from '../../src/harness/cli-launch.ts';
import { driverLines } from '../../src/harness/driver-lines.ts';
import { driverCommand, driverFiles, liteLlmDefaults, liteLlmModel } from '../../src/harness/python-cli.ts';
import { cliRunner, jsonFile, mcpServers, serverPatience } from '../cli-runner.ts';
import { pythonVersions } from '../versions.ts';

/** OpenHands. */
export const openhands = cliRunner({
  name: 'openhands',
  label: 'OpenHands',
  cli: pythonVersions.openhands,
  wires: ['openai-chat', 'anthropic-messages'],
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.agents/skills',
  limits: ['turns'],
  stream: { takerFor: driverLines },
  launch(context, model) {
    const { home, profile } = context;
    const ownFolder = `${home}/openhands`;
    // For the driver.
    const settings = {
      llm: { max_input_tokens: model.contextWindow, max_output_tokens: model.maxOutputTokens },
      turns: profile.maxTurns,
      serverPatience: serverPatience / 1000,
    };
    return {
      argv: (sessionId) => [...driverCommand(home, sessionId), JSON.stringify(settings), ...profile.args],
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
        jsonFile(`${ownFolder}/mcp.json`, { mcpServers: mcpServers(context, mcpEntry) }),
      ],
    };
  },
});
