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

/** aider. Its model calls no tools: it writes edits into its answers. */
export const aider = cliRunner({
  name: 'aider',
  label: 'aider',
  cli: pythonVersions.aider,
  wires: ['openai-chat', 'anthropic-messages'],
  continues: true,
  mcp: [],
  limits: [],
  stream: { takerFor: driverLines },
  launch({ home, profile }, model) {
    const { wire, contextWindow, maxOutputTokens } = model;
    const name = liteLlmModel(model);
    const settingsFile = `${home}/aider-settings.yml`;
    const metadataFile = `${home}/aider-metadata.json`;
    // For all models: the gateway retries.
    const limits = { max_retries: 0, max_tokens: maxOutputTokens };
    const metadata = {
      litellm_provider: wire === 'anthropic-messages' ? 'anthropic' : 'openai',
      mode: 'chat',
      max_input_tokens: contextWindow,
      max_output_tokens: maxOutputTokens,
    };
    return {
      argv: (sessionId) => [
        ...driverCommand(home, sessionId),
        // By default the others are other models of the same provider.
        ...['--model', name, '--weak-model', name, '--editor-model', name],
        ...['--model-settings-file', settingsFile, '--model-metadata-file', metadataFile],
        '--yes-always',
        ...off.map((option) => `--no-${option}`),
        '--analytics-disable',
        '--disable-playwright',
        ...profile.args,
      ],
      defaults: liteLlmDefaults,
      access: accessOfLiteLlm(model),
      files: [
        ...driverFiles(home, new URL('./driver.py', import.meta.url)),
        jsonFile(settingsFile, [{ name: 'aider/extra_params', extra_params: limits }]),
        jsonFile(metadataFile, { [name]: metadata }),
      ],
    };
  },
});

/** What aider does not do in a trial. A profile's `args` switch it on again. */
const off = [
  'check-update',
  'show-release-notes',
  'show-model-warnings',
  'detect-urls',
  'pretty',
  'fancy-input',
  'gitignore',
  // It reports tokens only for answers that are not streamed.
  'stream',
  // The work stays as it is in the workspace, as with other harnesses.
  'auto-commits',
  'dirty-commits',
  // With `--yes-always` it declines all of them.
  'suggest-shell-commands',
];
