import { z } from 'zod';
import type { LineTaker } from '../../src/harness/cli-stream.ts';
import { type CommandOutcome, type CommandResult, messageLines } from '../../src/harness/message-lines.ts';
import { packagePath } from '../../src/harness/npm-cli.ts';
import type { ModelAccess } from '../../src/harness/runner.ts';
import { modelFailure, type TurnRecord, type TurnStatus } from '../../src/harness/turn-record.ts';
import type { McpServer } from '../../src/suite/mcp-server.ts';
import type { Wire } from '../../src/suite/model-config.ts';
import {
  cliRunner,
  geminiMcpEntry,
  jsonFile,
  mcpServers,
  nodeWithoutCompiler,
  variables,
} from '../cli-runner.ts';
import { versions } from '../versions.ts';

const cli = versions['qwen-code'];

/** The exit code at its limit of turns. Qwen Code reports the limit only on stderr. */
const turnLimitExit = 53;

/** Qwen Code. */
export const qwenCode = cliRunner({
  name: 'qwen-code',
  label: 'Qwen Code',
  cli,
  wires: ['openai-chat', 'openai-responses', 'anthropic-messages'],
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  startsWithoutServers: true,
  skillsFolder: '~/.qwen/skills',
  limits: ['turns'],
  stream: {
    takerFor: qwenCodeLines,
    // Deltas of messages. The whole messages follow.
    skips: ['{"type":"stream_event"'],
    statusOfExit(exitCode, stderr) {
      if (exitCode !== turnLimitExit) return undefined;
      const message = stderr.trim().split('\n').at(-1) ?? 'it reached its limit of turns';
      return { kind: 'agent-failed', message };
    },
  },
  resume: '--resume',
  usageIsCumulative: true,
  launch(context, model) {
    const settingsFile = `${context.home}/qwen-settings.json`;
    const { maxTurns } = context.profile;
    const authType = authTypes[model.wire] ?? model.wire;
    const turns = maxTurns === undefined ? [] : ['--max-session-turns', String(maxTurns)];
    return {
      argv: {
        program: [...nodeWithoutCompiler, packagePath(cli, 'cli.js')],
        options: [
          ...['--output-format', 'stream-json', '--yolo', '--auth-type', authType, '-m', model.name],
          ...turns,
        ],
      },
      defaults: {
        // Without this, it would start itself again, without the flags of its Node.
        QWEN_CODE_NO_RELAUNCH: '1',
        QWEN_CODE_SUPPRESS_YOLO_WARNING: '1',
        ...variables({ QWEN_CODE_MAX_OUTPUT_TOKENS: model.maxOutputTokens }),
      },
      access: { ...accessOf(model), QWEN_CODE_SYSTEM_SETTINGS_PATH: settingsFile },
      // The system's settings override the user's and are merged with them.
      files: [jsonFile(settingsFile, settings(mcpServers(context, serverEntry), model))],
    };
  },
});

const authTypes: Partial<Record<Wire, string>> = {
  'openai-chat': 'openai',
  'openai-responses': 'openai-responses',
  'anthropic-messages': 'anthropic',
};

function accessOf({ wire, origin, token, name }: ModelAccess): Record<string, string> {
  if (wire === 'anthropic-messages') {
    return { ANTHROPIC_BASE_URL: origin, ANTHROPIC_API_KEY: token, ANTHROPIC_MODEL: name };
  }
  return { OPENAI_BASE_URL: `${origin}/v1`, OPENAI_API_KEY: token, OPENAI_MODEL: name };
}

function settings(servers: Record<string, unknown>, { contextWindow }: ModelAccess): unknown {
  return {
    general: { enableAutoUpdate: false },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    // This feature is a second agent that reads along and runs its own commands.
    memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
    // The gateway retries.
    model: { generationConfig: { maxRetries: 0, contextWindowSize: contextWindow } },
    mcpServers: servers,
  };
}

/** The longest time that it waits for a tool server to start, in milliseconds. */
const longestDiscovery = 300_000;

function serverEntry(server: McpServer): unknown {
  return { ...geminiMcpEntry(server), discoveryTimeoutMs: longestDiscovery };
}

const System = z.looseObject({ subtype: z.string() });
const Init = z.object({ session_id: z.string(), qwen_code_version: z.string().optional() });
const Result = z.object({
  is_error: z.boolean(),
  subtype: z.string(),
  error: z.object({ message: z.string() }).optional(),
  usage: z.object({
    input_tokens: z.number(),
    output_tokens: z.number(),
    cache_read_input_tokens: z.number().optional(),
    total_tokens: z.number().optional(),
  }),
});

/**
 * Reads `qwen --output-format stream-json`: the lines of Claude Code, with other contents and without times.
 */
function qwenCodeLines(record: TurnRecord): LineTaker {
  const takeMessage = messageLines(record, 'run_shell_command', outcomeOf);
  return (line, at) => {
    switch (line.type) {
      case 'system': {
        if (System.parse(line).subtype !== 'init') return;
        const init = Init.parse(line);
        record.begin(init.session_id);
        record.version = init.qwen_code_version ?? record.version;
        return;
      }
      case 'assistant':
      case 'user':
        return takeMessage(line, at);
      case 'result': {
        const result = Result.parse(line);
        record.usage = usageOf(result.usage);
        record.status = statusOf(result);
      }
    }
  };
}

/** The beginning of a message about a failure of the model's API. Nothing else distinguishes it. */
const apiErrorPrefix = '[API Error';

function statusOf({ is_error, error, subtype }: z.infer<typeof Result>): TurnStatus {
  if (!is_error) return { kind: 'done' };
  const message = error?.message ?? subtype;
  return message.startsWith(apiErrorPrefix) ? modelFailure(message) : { kind: 'agent-failed', message };
}

/** A shell's exit code for a killed program is 128 plus the signal. */
const signalBase = 128;

/**
 * How a command ended. For a command that prints something and exits with 0, the result is only its output.
 * For any other command, it is a block of labelled lines, and `Output` may have many lines.
 */
function outcomeOf({ command, text, failed }: CommandResult): CommandOutcome {
  const start = text.indexOf(`Command: ${command}\nDirectory: `);
  const end = /\nError: (?:(?!\nExit Code: )[\s\S])*\nExit Code: (\S+)\nSignal: (\S+)(?:\n[^\n]*)*$/.exec(
    text,
  );
  const isBlock = start !== -1 && end !== null && (failed || start === 0);
  if (!isBlock) {
    const truncated = /\nOutput too long and was saved to: [^\n]*$/.test(text);
    return failed ? { output: text } : { exitCode: 0, output: text, truncated };
  }
  const label = '\nOutput: ';
  const output = text.slice(text.indexOf(label, start) + label.length, end.index);
  return {
    exitCode: exitCodeOf(end[1], end[2]),
    output: output === '(empty)' ? '' : output,
    truncated: start > 0,
  };
}

function exitCodeOf(code: string | undefined, signal: string | undefined): number | undefined {
  const number = Number(signal);
  // Qwen Code reports exit code 0 for a killed command.
  if (Number.isInteger(number) && number > 0) return signalBase + number;
  return code !== undefined && /^\d+$/.test(code) ? Number(code) : undefined;
}

function usageOf(usage: z.infer<typeof Result>['usage']): TurnRecord['usage'] {
  return {
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    totalTokens: usage.total_tokens ?? usage.input_tokens + usage.output_tokens,
    ...(usage.cache_read_input_tokens !== undefined && { cacheReadTokens: usage.cache_read_input_tokens }),
  };
}
