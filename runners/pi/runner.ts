import { type Cli, cliSession } from '../../src/harness/cli-session.ts';
import { npmInstall, programPath, versionFile } from '../../src/harness/npm-cli.ts';
import {
  type HarnessContext,
  type ModelAccess,
  type Runner,
  requireModel,
} from '../../src/harness/runner.ts';
import type { Wire } from '../../src/suite/model-config.ts';
import { versions } from '../versions.ts';
import { piStream } from './stream.ts';

/** The coding agent pi. */
export const pi: Runner = {
  name: 'pi',
  label: 'pi',
  cli: versions.pi,
  wires: ['openai-chat', 'openai-responses', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: [],
  skillsFolder: '~/.agents/skills',
  limits: [],
  install: (profile) => npmInstall(versions.pi, profile.version),
  open: (context) => cliSession(context, piCli(context, requireModel('pi', context))),
};

const keyVariable = 'OFFSITE_MODEL_KEY';

const apis: Partial<Record<Wire, string>> = {
  'openai-chat': 'openai-completions',
  'openai-responses': 'openai-responses',
  'anthropic-messages': 'anthropic-messages',
};

function piCli({ profile }: HarnessContext, model: ModelAccess): Cli {
  return {
    label: 'pi',
    argv: (sessionId) => [
      programPath(versions.pi),
      '--mode',
      'json',
      '-p',
      // Use the workspace's own settings and skills.
      '--approve',
      '--provider',
      'offsite',
      '--model',
      model.name,
      ...(sessionId === undefined ? [] : ['--session', sessionId]),
      ...profile.args,
    ],
    defaults: { PI_OFFLINE: '1', PI_TELEMETRY: '0' },
    access: { [keyVariable]: model.token },
    files: [
      { path: '~/.pi/agent/models.json', content: JSON.stringify(provider(model)) },
      {
        path: '~/.pi/agent/settings.json',
        // The gateway retries.
        content: JSON.stringify({ retry: { enabled: false, provider: { maxRetries: 0 } } }),
        existing: 'kept',
      },
    ],
    versionFile: versionFile(versions.pi),
    ...piStream,
    usageIsCumulative: false,
  };
}

function provider({ wire, origin, name, contextWindow, maxOutputTokens }: ModelAccess): unknown {
  return {
    providers: {
      offsite: {
        baseUrl: wire === 'anthropic-messages' ? origin : `${origin}/v1`,
        api: apis[wire],
        apiKey: `$${keyVariable}`,
        models: [{ id: name, contextWindow, maxTokens: maxOutputTokens }],
      },
    },
  };
}
