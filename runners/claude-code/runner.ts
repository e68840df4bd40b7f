import { z } from 'zod';
import { mcpEntry } from '../../src/harness/cli-launch.ts';
import type { LineTaker } from '../../src/harness/cli-stream.ts';
import { type CommandOutcome, type CommandResult, messageLines } from '../../src/harness/message-lines.ts';
import { modelFailure, type TurnRecord, type TurnStatus } from '../../src/harness/turn-record.ts';
import { cliRunner, jsonFile, mcpServers, serverPatience, variables } from '../cli-runner.ts';
import { versions } from '../versions.ts';

/** Anthropic's Claude Code. */
export const claudeCode = cliRunner({
  name: 'claude-code',
  label: 'Claude Code',
  cli: versions['claude-code'],
  wires: ['anthropic-messages'],
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  startsWithoutServers: true,
  skillsFolder: '~/.claude/skills',
  limits: ['turns'],
  stream: { takerFor: claudeCodeLines },
  resume: '--resume',
  launch(context, { name, origin, token, maxOutputTokens, contextWindow }) {
    const { maxTurns } = context.profile;
    const servers = mcpServers(context, mcpEntry);
    const hasServers = Object.keys(servers).length > 0;
    const serverFile = `${context.home}/mcp.json`;
    const options = [
      '-p',
      '--output-format',
      'stream-json',
      // The CLI refuses stream-json without it.
      '--verbose',
      '--dangerously-skip-permissions',
      '--model',
      name,
      ...(maxTurns === undefined ? [] : ['--max-turns', String(maxTurns)]),
      ...(hasServers ? ['--mcp-config', serverFile] : []),
    ];
    return {
      argv: { options },
      defaults: {
        // As root, the CLI skips permissions only in a sandbox.
        IS_SANDBOX: '1',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        DISABLE_AUTOUPDATER: '1',
        DISABLE_TELEMETRY: '1',
        DISABLE_ERROR_REPORTING: '1',
        // The gateway retries.
        CLAUDE_CODE_MAX_RETRIES: '0',
        MCP_TIMEOUT: String(serverPatience),
        // Without this, it may ask its model before all tool servers have started.
        MCP_CONNECTION_NONBLOCKING: '0',
        // The models that sub-agents and summaries use.
        ANTHROPIC_DEFAULT_OPUS_MODEL: name,
        ANTHROPIC_DEFAULT_SONNET_MODEL: name,
        ANTHROPIC_DEFAULT_HAIKU_MODEL: name,
        ANTHROPIC_SMALL_FAST_MODEL: name,
        CLAUDE_CODE_SUBAGENT_MODEL: name,
        ...variables({
          CLAUDE_CODE_MAX_OUTPUT_TOKENS: maxOutputTokens,
          CLAUDE_CODE_MAX_CONTEXT_TOKENS: contextWindow,
        }),
      },
      access: { ANTHROPIC_BASE_URL: origin, ANTHROPIC_API_KEY: token },
      files: hasServers ? [jsonFile(serverFile, { mcpServers: servers })] : [],
    };
  },
});

const System = z.looseObject({ subtype: z.string() });
const Init = z.object({ session_id: z.string(), claude_code_version: z.string().optional() });
const Retry = z.object({ attempt: z.number(), error_status: z.number().nullish() });
const Result = z.object({
  subtype: z.string(),
  is_error: z.boolean(),
  result: z.string().optional(),
  errors: z.array(z.string()).optional(),
  api_error_status: z.number().nullish(),
  usage: z.object({
    input_tokens: z.number(),
    output_tokens: z.number(),
    cache_read_input_tokens: z.number().nullish(),
    cache_creation_input_tokens: z.number().nullish(),
  }),
});

/**
 * Reads `claude -p --output-format stream-json`: `system` (init, retries), `assistant` and `user` messages,
 * and one `result`. If a command's exit code is not 0, it is in the text of the command's result. Only `user`
 * lines have times.
 */
export function claudeCodeLines(record: TurnRecord): LineTaker {
  const takeMessage = messageLines(record, 'Bash', outcomeOf);
  /** Whether the model's API failed instead of giving the last message. */
  let apiError = false;
  return (line, at) => {
    switch (line.type) {
      case 'system':
        return takeSystem(record, line, at);
      case 'assistant':
        apiError = typeof line.error === 'string';
        return takeMessage(line, at);
      case 'user':
        return takeMessage(line, at);
      case 'result': {
        const result = Result.parse(line);
        record.usage = usageOf(result.usage);
        record.status = statusOf(result, apiError);
      }
    }
  };
}

function takeSystem(record: TurnRecord, line: Record<string, unknown>, at: number): void {
  const { subtype } = System.parse(line);
  if (subtype === 'init') {
    const init = Init.parse(line);
    record.begin(init.session_id);
    record.version = init.claude_code_version ?? record.version;
  } else if (subtype === 'api_retry') {
    const { attempt, error_status } = Retry.parse(line);
    record.note(`retries its model (attempt ${attempt}) after ${error_status ?? 'a lost connection'}`, at);
  }
}

/**
 * The status of a turn by its result. `is_error` says whether it failed; `subtype` is "success" even then.
 */
function statusOf(result: z.infer<typeof Result>, apiError: boolean): TurnStatus {
  if (!result.is_error) return { kind: 'done' };
  const message = result.result ?? result.errors?.join('; ') ?? result.subtype;
  if (apiError || result.api_error_status != null) return modelFailure(message);
  return { kind: 'agent-failed', message };
}

const Details = z.object({
  stdout: z.string(),
  stderr: z.string(),
  persistedOutputPath: z.string().optional(),
  backgroundTaskId: z.string().optional(),
});

/** A line that the CLI adds to stderr when a command leaves the workspace. */
const ownRemark = /\n?Shell cwd was reset to [^\n]*$/;

/**
 * How a command ended. The text of a failed command begins with its exit code, and its details add nothing.
 */
function outcomeOf({ text, failed, details }: CommandResult): CommandOutcome {
  const code = failed ? /^Exit code (\d+)(?:\n|$)/.exec(text) : null;
  if (code) {
    const output = text.slice(code[0].length);
    const truncated = /\n\.\.\. \[\d+ characters truncated\] \.\.\.\n/.test(output);
    return { exitCode: Number(code[1]), output, truncated };
  }
  const known = Details.safeParse(details).data;
  // The command was refused, stopped or moved to the background, so it has no exit code yet.
  if (failed || known === undefined || known.backgroundTaskId !== undefined) return { output: text };
  const { stdout, stderr, persistedOutputPath } = known;
  const remarks = stderr.replace(ownRemark, '');
  const output = [stdout, remarks].filter((part) => part !== '').join('\n');
  return { exitCode: 0, output, truncated: persistedOutputPath !== undefined };
}

/** Anthropic does not include cached input in its count of input tokens. */
function usageOf(usage: z.infer<typeof Result>['usage']): TurnRecord['usage'] {
  const cacheReadTokens = usage.cache_read_input_tokens ?? 0;
  const cacheWriteTokens = usage.cache_creation_input_tokens ?? 0;
  const inputTokens = usage.input_tokens + cacheReadTokens + cacheWriteTokens;
  return {
    inputTokens,
    outputTokens: usage.output_tokens,
    cacheReadTokens,
    cacheWriteTokens,
    totalTokens: inputTokens + usage.output_tokens,
  };
}
