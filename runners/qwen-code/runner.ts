import { type Cli, cliSession } from '../../src/harness/cli-session.ts';
import { harnessNode, npmInstall, packagePath, versionFile } from '../../src/harness/npm-cli.ts';
import {
  type HarnessContext,
  type ModelAccess,
  type Runner,
  requireModel,
} from '../../src/harness/runner.ts';
import { type McpServer, transportOf } from '../../src/suite/mcp-server.ts';
import type { Wire } from '../../src/suite/model-config.ts';
import { versions } from '../versions.ts';
import { qwenCodeStream } from './stream.ts';

/** Qwen Code. */
export const qwenCode: Runner = {
  name: 'qwen-code',
  label: 'Qwen Code',
  cli: versions['qwen-code'],
  wires: ['openai-chat', 'openai-responses', 'anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.qwen/skills',
  limits: ['turns'],
  install: (profile) => npmInstall(versions['qwen-code'], profile.version),
  open: (context) => cliSession(context, qwenCodeCli(context, requireModel('Qwen Code', context))),
};

const authTypes: Partial<Record<Wire, string>> = {
  'openai-chat': 'openai',
  'openai-responses': 'openai-responses',
  'anthropic-messages': 'anthropic',
};

function qwenCodeCli({ profile, home }: HarnessContext, model: ModelAccess): Cli {
  const settingsFile = `${home}/qwen-settings.json`;
  return {
    label: 'Qwen Code',
    argv: (sessionId) => [
      harnessNode,
      // Without these flags, it compiles a large parser when it exits after a command, which takes 2 GB of
      // memory and 5 s.
      '--no-wasm-tier-up',
      '--no-wasm-dynamic-tiering',
      '--liftoff-only',
      packagePath(versions['qwen-code'], 'cli.js'),
      '--output-format',
      'stream-json',
      '--yolo',
      '--auth-type',
      authTypes[model.wire] ?? model.wire,
      '-m',
      model.name,
      ...(profile.maxTurns === undefined ? [] : ['--max-session-turns', String(profile.maxTurns)]),
      ...(sessionId === undefined ? [] : ['--resume', sessionId]),
      ...profile.args,
    ],
    defaults: {
      // Without this, it would start itself again, without the flags above.
      QWEN_CODE_NO_RELAUNCH: '1',
      QWEN_CODE_SUPPRESS_YOLO_WARNING: '1',
      ...(model.maxOutputTokens !== undefined && {
        QWEN_CODE_MAX_OUTPUT_TOKENS: String(model.maxOutputTokens),
      }),
    },
    access: { ...accessOf(model), QWEN_CODE_SYSTEM_SETTINGS_PATH: settingsFile },
    // The system's settings override the user's and are merged with them.
    files: [{ path: settingsFile, content: JSON.stringify(settings(profile.mcpServers, model)) }],
    versionFile: versionFile(versions['qwen-code']),
    ...qwenCodeStream,
    usageIsCumulative: true,
  };
}

function accessOf({ wire, origin, token, name }: ModelAccess): Record<string, string> {
  if (wire === 'anthropic-messages') {
    return { ANTHROPIC_BASE_URL: origin, ANTHROPIC_API_KEY: token, ANTHROPIC_MODEL: name };
  }
  return { OPENAI_BASE_URL: `${origin}/v1`, OPENAI_API_KEY: token, OPENAI_MODEL: name };
}

function settings(servers: Record<string, McpServer>, model: ModelAccess): unknown {
  return {
    general: { enableAutoUpdate: false },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    // This feature is a second agent that reads along and runs its own commands.
    memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
    model: {
      generationConfig: {
        // The gateway retries.
        maxRetries: 0,
        ...(model.contextWindow !== undefined && { contextWindowSize: model.contextWindow }),
      },
    },
    mcpServers: Object.fromEntries(
      Object.entries(servers).map(([name, server]) => [name, serverEntry(server)]),
    ),
  };
}

function serverEntry(server: McpServer): unknown {
  if (!('url' in server)) return server;
  const { url, headers } = server;
  return { ...(transportOf(server) === 'sse' ? { url } : { httpUrl: url }), ...(headers && { headers }) };
}
