import { type Cli, cliSession } from '../../src/harness/cli-session.ts';
import { npmInstall, programPath, versionFile } from '../../src/harness/npm-cli.ts';
import {
  type HarnessContext,
  type ModelAccess,
  type Runner,
  requireModel,
} from '../../src/harness/runner.ts';
import { type McpServer, transportOf } from '../../src/suite/mcp-server.ts';
import { versions } from '../versions.ts';
import { clineStream } from './stream.ts';

/** Cline. With `--json`, it takes no second message. */
export const cline: Runner = {
  name: 'cline',
  label: 'Cline',
  cli: versions.cline,
  // On other wires, it asks for tools that the model's provider would run, which the gateway refuses.
  wires: ['openai-chat'],
  reportsCommands: true,
  continues: false,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.agents/skills',
  limits: [],
  install: (profile) => npmInstall(versions.cline, profile.version),
  open: (context) => cliSession(context, clineCli(context, requireModel('Cline', context))),
};

function clineCli({ profile, home }: HarnessContext, model: ModelAccess): Cli {
  const [providers, settings, servers] = ['providers', 'settings', 'mcp'].map(
    (name) => `${home}/cline-${name}.json`,
  ) as [string, string, string];
  return {
    label: 'Cline',
    argv: () => [
      programPath(versions.cline),
      '--json',
      '--auto-approve',
      'true',
      ...profile.args,
      // Cline reads the prompt from stdin only if it also has an argument. It joins the two and trims the
      // result.
      ' ',
    ],
    defaults: {
      CLINE_GLOBAL_SETTINGS_PATH: settings,
      CLINE_MCP_SETTINGS_PATH: servers,
      // Without it, a daemon runs the session.
      CLINE_SESSION_BACKEND_MODE: 'local',
    },
    access: {
      OPENAI_API_KEY: model.token,
      CLINE_PROVIDER_SETTINGS_PATH: providers,
    },
    files: [
      { path: providers, content: JSON.stringify(providerSettings(model)) },
      { path: settings, content: JSON.stringify({ telemetryOptOut: true, autoUpdateEnabled: false }) },
      { path: servers, content: JSON.stringify(serverSettings(profile.mcpServers)) },
    ],
    versionFile: versionFile(versions.cline),
    ...clineStream,
    usageIsCumulative: false,
  };
}

const provider = 'openai-compatible';

function providerSettings({ name, origin, contextWindow, maxOutputTokens }: ModelAccess): unknown {
  const settings = {
    provider,
    model: name,
    baseUrl: `${origin}/v1`,
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxOutputTokens !== undefined && { maxTokens: maxOutputTokens }),
  };
  return {
    version: 1,
    lastUsedProvider: provider,
    modes: {},
    providers: { [provider]: { settings, updatedAt: '2026-01-01T00:00:00.000Z', tokenSource: 'manual' } },
  };
}

function serverSettings(servers: Record<string, McpServer>): unknown {
  const entries = Object.entries(servers).map(([name, server]) => [name, serverEntry(server)]);
  return { mcpServers: Object.fromEntries(entries) };
}

function serverEntry(server: McpServer): unknown {
  if (!('url' in server)) return server;
  const { url, headers } = server;
  const type = transportOf(server) === 'sse' ? 'sse' : 'streamableHttp';
  return { type, url, ...(headers && { headers }) };
}
