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

/** aider. Its model calls no tools: it writes edits into its answers. */
export const aider: Runner = {
  name: 'aider',
  label: 'aider',
  cli: pythonVersions.aider,
  wires: ['openai-chat', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: [],
  limits: [],
  install: (profile) => pythonInstall(pythonVersions.aider, profile.version),
  open: (context) => cliSession(context, aiderCli(context, requireModel('aider', context))),
};

function aiderCli({ profile, home }: HarnessContext, model: ModelAccess): Cli {
  const settingsFile = `${home}/aider-settings.yml`;
  const metadataFile = `${home}/aider-metadata.json`;
  const name = liteLlmModel(model);
  return {
    label: 'aider',
    argv: (sessionId) => [
      ...driverCommand(home, sessionId),
      '--model',
      name,
      // By default these are other models of the same provider.
      '--weak-model',
      name,
      '--editor-model',
      name,
      '--model-settings-file',
      settingsFile,
      '--model-metadata-file',
      metadataFile,
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
      { path: settingsFile, content: JSON.stringify(settings(model)) },
      { path: metadataFile, content: JSON.stringify({ [name]: metadata(model) }) },
    ],
    versionFile: pythonVersionFile(pythonVersions.aider),
    takerFor: driverLines,
    usageIsCumulative: false,
  };
}

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

/** For all models: the gateway retries. */
function settings({ maxOutputTokens }: ModelAccess): unknown {
  const limits = { max_retries: 0, ...(maxOutputTokens !== undefined && { max_tokens: maxOutputTokens }) };
  return [{ name: 'aider/extra_params', extra_params: limits }];
}

function metadata({ wire, contextWindow, maxOutputTokens }: ModelAccess): unknown {
  return {
    litellm_provider: wire === 'anthropic-messages' ? 'anthropic' : 'openai',
    mode: 'chat',
    ...(contextWindow !== undefined && { max_input_tokens: contextWindow }),
    ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
  };
}
