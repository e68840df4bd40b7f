import { type Cli, cliSession } from '../../src/harness/cli-session.ts';
import { npmInstall, programPath, versionFile } from '../../src/harness/npm-cli.ts';
import {
  type HarnessContext,
  type ModelAccess,
  type Runner,
  requireModel,
} from '../../src/harness/runner.ts';
import type { McpServer } from '../../src/suite/mcp-server.ts';
import { versions } from '../versions.ts';
import { codexLines } from './stream.ts';

/** OpenAI's Codex CLI. */
export const codex: Runner = {
  name: 'codex',
  label: 'Codex CLI',
  cli: versions.codex,
  wires: ['openai-responses'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http'],
  skillsFolder: '~/.agents/skills',
  limits: [],
  install: (profile) => npmInstall(versions.codex, profile.version),
  open: (context) => cliSession(context, codexCli(context, requireModel('Codex', context))),
};

/** Not OPENAI_API_KEY: with that variable, Codex would also look for an account. */
const keyVariable = 'OFFSITE_MODEL_KEY';

/** Settings are arguments, so that a `~/.codex/config.toml` of the profile keeps its other settings. */
function codexCli({ profile }: HarnessContext, model: ModelAccess): Cli {
  const settings: Record<string, string | number | boolean | undefined> = {
    model: model.name,
    model_provider: 'offsite',
    'model_providers.offsite.name': 'offsite',
    'model_providers.offsite.base_url': `${model.origin}/v1`,
    'model_providers.offsite.env_key': keyVariable,
    'model_providers.offsite.wire_api': 'responses',
    // The gateway retries, and it knows better when.
    'model_providers.offsite.request_max_retries': 0,
    'model_providers.offsite.stream_max_retries': 0,
    // The search runs at the model's provider, outside the sandbox.
    web_search: 'disabled',
    check_for_update_on_startup: false,
    'analytics.enabled': false,
    model_context_window: model.contextWindow,
  };
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  const servers = Object.entries(profile.mcpServers);
  return {
    label: 'Codex',
    argv: (sessionId) => [
      programPath(versions.codex),
      'exec',
      '--json',
      '--skip-git-repo-check',
      '--dangerously-bypass-approvals-and-sandbox',
      // Codex looks for plugins on the network.
      '--disable',
      'plugins',
      ...given.flatMap(([name, value]) => ['-c', `${name}=${JSON.stringify(value)}`]),
      ...profile.args,
      ...(sessionId === undefined ? [] : ['resume', sessionId]),
      // Read the prompt from stdin.
      '-',
    ],
    defaults: {},
    access: { [keyVariable]: model.token },
    files:
      servers.length === 0
        ? []
        : [
            {
              path: '~/.codex/config.toml',
              content: servers.map(([name, server]) => serverTable(name, server)).join('\n'),
              existing: 'appended-to',
            },
          ],
    versionFile: versionFile(versions.codex),
    takerFor: codexLines,
    usageIsCumulative: true,
  };
}

/** The server as a TOML table. TOML strings and arrays of strings are written as in JSON. */
function serverTable(name: string, server: McpServer): string {
  const heading = `[mcp_servers.${name}]\n`;
  if ('url' in server) {
    const url = `url = ${JSON.stringify(server.url)}`;
    return `${heading}${url}\nhttp_headers = ${inlineTable(server.headers ?? {})}\n`;
  }
  return [
    `${heading}command = ${JSON.stringify(server.command)}`,
    `args = ${JSON.stringify(server.args)}`,
    `env = ${inlineTable(server.env)}`,
    '',
  ].join('\n');
}

function inlineTable(texts: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(texts).map(
    ([key, value]) => `${JSON.stringify(key)} = ${JSON.stringify(value)}`,
  );
  return `{ ${pairs.join(', ')} }`;
}
