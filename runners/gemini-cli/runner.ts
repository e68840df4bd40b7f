import { type Cli, cliSession } from '../../src/harness/cli-session.ts';
import { harnessNode, npmInstall, packagePath, versionFile } from '../../src/harness/npm-cli.ts';
import {
  type HarnessContext,
  type ModelAccess,
  type Runner,
  requireModel,
} from '../../src/harness/runner.ts';
import { type McpServer, transportOf } from '../../src/suite/mcp-server.ts';
import { versions } from '../versions.ts';
import { geminiStream } from './stream.ts';

/** Google's Gemini CLI. */
export const gemini: Runner = {
  name: 'gemini-cli',
  label: 'Gemini CLI',
  cli: versions['gemini-cli'],
  wires: ['gemini'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.gemini/skills',
  limits: ['turns'],
  install: (profile) => npmInstall(versions['gemini-cli'], profile.version),
  open: (context) => cliSession(context, geminiCli(context, requireModel('Gemini CLI', context))),
};

/** The context window, in tokens, that it assumes for a model that it does not know. */
const assumedWindow = 1_048_576;

/** The part of the context window at which it compresses the conversation, by default. */
const compressedAt = 0.5;

/** Its own sub-agents. Each names a model of its own, and so do its utilities, in the scope `core`. */
const scopes = ['core', 'codebase_investigator', 'cli_help', 'generalist'];

function geminiCli({ profile, home }: HarnessContext, model: ModelAccess): Cli {
  const settingsFile = `${home}/gemini-settings.json`;
  return {
    label: 'Gemini CLI',
    argv: (sessionId) => [
      harnessNode,
      // Without these flags, it compiles a large parser after a command, which takes 600 MB of memory.
      '--no-wasm-tier-up',
      '--no-wasm-dynamic-tiering',
      '--liftoff-only',
      packagePath(versions['gemini-cli'], 'bundle/gemini.js'),
      '--output-format',
      'stream-json',
      // It shows the exit code of a command only in this mode.
      '--debug',
      '--yolo',
      '--model',
      model.name,
      ...(sessionId === undefined ? [] : ['--resume', sessionId]),
      ...profile.args,
    ],
    defaults: {
      // Without this, it would start itself again, without the flags above.
      GEMINI_CLI_NO_RELAUNCH: 'true',
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
    },
    access: {
      GOOGLE_GEMINI_BASE_URL: model.origin,
      GEMINI_API_KEY: model.token,
      GEMINI_CLI_SYSTEM_SETTINGS_PATH: settingsFile,
    },
    // The system's settings override the user's and are merged with them.
    files: [{ path: settingsFile, content: JSON.stringify(settings(profile, model)) }],
    versionFile: versionFile(versions['gemini-cli']),
    ...geminiStream,
    usageIsCumulative: false,
  };
}

function settings({ maxTurns, mcpServers }: HarnessContext['profile'], model: ModelAccess): unknown {
  const { name, contextWindow, maxOutputTokens } = model;
  return {
    general: {
      enableAutoUpdate: false,
      enableAutoUpdateNotification: false,
      // The gateway retries.
      maxAttempts: 1,
      retryFetchErrors: false,
    },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
    model: {
      ...(maxTurns !== undefined && { maxSessionTurns: maxTurns }),
      ...(contextWindow !== undefined && {
        compressionThreshold: (compressedAt * contextWindow) / assumedWindow,
      }),
    },
    modelConfigs: {
      customOverrides: scopes.map((overrideScope) => ({
        match: { overrideScope },
        modelConfig: { model: name, generateContentConfig: { maxOutputTokens } },
      })),
    },
    mcpServers: Object.fromEntries(
      Object.entries(mcpServers).map(([name, server]) => [name, serverEntry(server)]),
    ),
  };
}

function serverEntry(server: McpServer): unknown {
  if (!('url' in server)) return server;
  const { url, headers } = server;
  return { ...(transportOf(server) === 'sse' ? { url } : { httpUrl: url }), ...(headers && { headers }) };
}
