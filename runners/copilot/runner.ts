import { type Cli, cliSession } from '../../src/harness/cli-session.ts';
import { harnessFolder, npmInstall, programPath, versionFile } from '../../src/harness/npm-cli.ts';
import {
  type HarnessContext,
  type ModelAccess,
  type Runner,
  requireModel,
} from '../../src/harness/runner.ts';
import { type McpServer, transportOf } from '../../src/suite/mcp-server.ts';
import { versions } from '../versions.ts';
import { copilotStream } from './stream.ts';

/** GitHub's Copilot CLI, with a model that the user chooses. */
export const copilot: Runner = {
  name: 'copilot',
  label: 'Copilot CLI',
  cli: versions.copilot,
  wires: ['openai-chat', 'openai-responses', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.copilot/skills',
  limits: [],
  install: (profile) => copilotInstall(profile.version),
  open: (context) => cliSession(context, copilotCli(context, requireModel('Copilot CLI', context))),
};

/** The folder into which its program is unpacked. */
const unpacked = `${harnessFolder}/copilot-unpacked`;

/** Copilot CLI does not start without certificates, even if it does not use TLS. Some images have none. */
const certificates = `${harnessFolder}/certificates.pem`;

/**
 * The script that installs it. Its program is an archive of 235 MB, which it unpacks when it first runs. The
 * script unpacks it, so that no trial has to.
 */
function copilotInstall(version: string | undefined): string {
  return `${npmInstall(versions.copilot, version)}
home=$(mktemp -d)
HOME="$home" ${programPath(versions.copilot)} --version > /dev/null 2>&1 < /dev/null
mv "$home"/.cache/copilot/pkg/*/* ${unpacked}
rm -rf "$home"
[ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt ${certificates}
# It ends the line that has its version with a full stop.
sed -i 's/[.]$//' ${versionFile(versions.copilot)}
`;
}

function copilotCli({ profile, home }: HarnessContext, model: ModelAccess): Cli {
  const servers = Object.entries(profile.mcpServers);
  const serverFile = `${home}/copilot-mcp.json`;
  return {
    label: 'Copilot CLI',
    argv: (sessionId) => [
      programPath(versions.copilot),
      '--output-format',
      'json',
      '--yolo',
      '--no-ask-user',
      '--disable-client-telemetry',
      ...(servers.length === 0 ? [] : ['--additional-mcp-config', `@${serverFile}`]),
      ...(sessionId === undefined ? [] : ['--resume', sessionId]),
      ...profile.args,
    ],
    defaults: {
      // No account, no telemetry, no tools of GitHub.
      COPILOT_OFFLINE: 'true',
      COPILOT_AUTO_UPDATE: 'false',
      // Exactly this value also makes it use the workspace's own instructions and skills.
      COPILOT_ALLOW_ALL: 'true',
      COPILOT_CLI_DIST_DIR: unpacked,
      SSL_CERT_FILE: certificates,
      ...limitsOf(model),
    },
    access: {
      ...addressOf(model),
      COPILOT_PROVIDER_API_KEY: model.token,
      COPILOT_MODEL: model.name,
    },
    files:
      servers.length === 0
        ? []
        : [
            {
              path: serverFile,
              content: JSON.stringify({
                mcpServers: Object.fromEntries(servers.map(([name, server]) => [name, serverEntry(server)])),
              }),
            },
          ],
    versionFile: versionFile(versions.copilot),
    ...copilotStream,
    usageIsCumulative: false,
  };
}

function addressOf({ wire, origin }: ModelAccess): Record<string, string> {
  if (wire === 'anthropic-messages') {
    return { COPILOT_PROVIDER_TYPE: 'anthropic', COPILOT_PROVIDER_BASE_URL: origin };
  }
  return {
    COPILOT_PROVIDER_TYPE: 'openai',
    COPILOT_PROVIDER_BASE_URL: `${origin}/v1`,
    COPILOT_PROVIDER_WIRE_API: wire === 'openai-responses' ? 'responses' : 'completions',
  };
}

function limitsOf({ contextWindow, maxOutputTokens }: ModelAccess): Record<string, string> {
  return {
    ...(maxOutputTokens !== undefined && { COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: String(maxOutputTokens) }),
    ...(contextWindow !== undefined && {
      COPILOT_PROVIDER_MAX_PROMPT_TOKENS: String(contextWindow - (maxOutputTokens ?? 0)),
    }),
  };
}

function serverEntry(server: McpServer): unknown {
  const tools = ['*'];
  if (!('url' in server)) return { type: 'local', ...server, tools };
  const { url, headers } = server;
  return { type: transportOf(server), url, ...(headers && { headers }), tools };
}
