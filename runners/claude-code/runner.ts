import { type Cli, cliSession } from '../../src/harness/cli-session.ts';
import { npmInstall, programPath, versionFile } from '../../src/harness/npm-cli.ts';
import { mcpEntry } from '../../src/harness/program-environment.ts';
import {
  type HarnessContext,
  type ModelAccess,
  type Runner,
  requireModel,
} from '../../src/harness/runner.ts';
import { versions } from '../versions.ts';
import { claudeCodeLines } from './stream.ts';

/** Anthropic's Claude Code. */
export const claudeCode: Runner = {
  name: 'claude-code',
  label: 'Claude Code',
  cli: versions['claude-code'],
  wires: ['anthropic-messages'],
  reportsCommands: true,
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  skillsFolder: '~/.claude/skills',
  limits: ['turns'],
  install: (profile) => npmInstall(versions['claude-code'], profile.version),
  open: (context) => cliSession(context, claudeCodeCli(context, requireModel('Claude Code', context))),
};

function claudeCodeCli({ profile, home }: HarnessContext, model: ModelAccess): Cli {
  const servers = Object.entries(profile.mcpServers);
  const serverFile = `${home}/mcp.json`;
  return {
    label: 'Claude Code',
    argv: (sessionId) => [
      programPath(versions['claude-code']),
      '-p',
      '--output-format',
      'stream-json',
      // The CLI refuses stream-json without it.
      '--verbose',
      '--dangerously-skip-permissions',
      '--model',
      model.name,
      ...(profile.maxTurns === undefined ? [] : ['--max-turns', String(profile.maxTurns)]),
      ...(servers.length === 0 ? [] : ['--mcp-config', serverFile]),
      ...(sessionId === undefined ? [] : ['--resume', sessionId]),
      ...profile.args,
    ],
    defaults: {
      // As root, the CLI skips permissions only in a sandbox.
      IS_SANDBOX: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_TELEMETRY: '1',
      DISABLE_ERROR_REPORTING: '1',
      // The gateway retries.
      CLAUDE_CODE_MAX_RETRIES: '0',
      // The models that sub-agents and summaries use.
      ANTHROPIC_DEFAULT_OPUS_MODEL: model.name,
      ANTHROPIC_DEFAULT_SONNET_MODEL: model.name,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model.name,
      ANTHROPIC_SMALL_FAST_MODEL: model.name,
      CLAUDE_CODE_SUBAGENT_MODEL: model.name,
      ...(model.maxOutputTokens !== undefined && {
        CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(model.maxOutputTokens),
      }),
      ...(model.contextWindow !== undefined && {
        CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(model.contextWindow),
      }),
    },
    access: { ANTHROPIC_BASE_URL: model.origin, ANTHROPIC_API_KEY: model.token },
    files:
      servers.length === 0
        ? []
        : [
            {
              path: serverFile,
              content: JSON.stringify({
                mcpServers: Object.fromEntries(servers.map(([name, server]) => [name, mcpEntry(server)])),
              }),
            },
          ],
    versionFile: versionFile(versions['claude-code']),
    takerFor: claudeCodeLines,
    usageIsCumulative: false,
  };
}
