import { type Cli, cliSession } from '../../src/harness/cli-session.ts';
import { npmInstall, programPath, versionFile } from '../../src/harness/npm-cli.ts';
import {
  type HarnessContext,
  type ModelAccess,
  type Runner,
  requireModel,
} from '../../src/harness/runner.ts';
import type { McpServer } from '../../src/suite/mcp-server.ts';
import type { Wire } from '../../src/suite/model-config.ts';
import { versions } from '../versions.ts';
import { opencodeLines } from './stream.ts';

/** opencode. */
export const opencode: Runner = {
  name: 'opencode',
  label: 'opencode',
  cli: versions.opencode,
  wires: ['openai-chat', 'openai-responses', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.config/opencode/skills',
  limits: [],
  install: (profile) => npmInstall(versions.opencode, profile.version),
  open: (context) => cliSession(context, opencodeCli(context, requireModel('opencode', context))),
};

const keyVariable = 'OFFSITE_MODEL_KEY';

/** opencode needs an output limit whenever it has a context window. Tokens. */
const defaultOutput = 32_000;

/** These adapters are part of opencode's binary. It would download any other. */
const adapters: Partial<Record<Wire, string>> = {
  'openai-chat': '@ai-sdk/openai-compatible',
  'openai-responses': '@ai-sdk/openai',
  'anthropic-messages': '@ai-sdk/anthropic',
};

function opencodeCli({ profile, home }: HarnessContext, model: ModelAccess): Cli {
  const configFile = `${home}/opencode.json`;
  return {
    label: 'opencode',
    argv: (sessionId) => [
      programPath(versions.opencode),
      'run',
      '--format',
      'json',
      '--auto',
      // Without a title, it asks the model for one.
      '--title',
      'trial',
      '-m',
      `offsite/${model.name}`,
      ...(sessionId === undefined ? [] : ['-s', sessionId]),
      ...profile.args,
    ],
    defaults: {
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      OPENCODE_DISABLE_SHARE: '1',
    },
    access: { [keyVariable]: model.token, OPENCODE_CONFIG: configFile },
    files: [{ path: configFile, content: JSON.stringify(configuration(profile.mcpServers, model)) }],
    versionFile: versionFile(versions.opencode),
    takerFor: opencodeLines,
    usageIsCumulative: false,
  };
}

function configuration(servers: Record<string, McpServer>, model: ModelAccess): unknown {
  const limit = model.contextWindow !== undefined && {
    limit: { context: model.contextWindow, output: model.maxOutputTokens ?? defaultOutput },
  };
  return {
    autoupdate: false,
    share: 'disabled',
    permission: 'allow',
    model: `offsite/${model.name}`,
    small_model: `offsite/${model.name}`,
    provider: {
      offsite: {
        npm: adapters[model.wire],
        options: { baseURL: `${model.origin}/v1`, apiKey: `{env:${keyVariable}}` },
        models: { [model.name]: { ...limit } },
      },
    },
    mcp: Object.fromEntries(Object.entries(servers).map(([name, server]) => [name, serverEntry(server)])),
  };
}

function serverEntry(server: McpServer): unknown {
  if ('url' in server) {
    const { url, headers } = server;
    // Without this, an answer 401 would make it ask for a login.
    return { type: 'remote', url, enabled: true, oauth: false, ...(headers && { headers }) };
  }
  const { command, args, env } = server;
  return { type: 'local', command: [command, ...args], environment: env, enabled: true };
}
