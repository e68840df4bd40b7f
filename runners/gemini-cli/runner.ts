import { z } from 'zod';
import type { LineTaker } from '../../src/harness/cli-stream.ts';
import type { CommandOutcome } from '../../src/harness/message-lines.ts';
import { packagePath } from '../../src/harness/npm-cli.ts';
import type { HarnessContext, ModelAccess } from '../../src/harness/runner.ts';
import { modelFailure, type TurnRecord, type TurnStatus } from '../../src/harness/turn-record.ts';
import {
  beginCall,
  cliRunner,
  endCall,
  geminiMcpEntry,
  jsonFile,
  mcpServers,
  nodeWithoutCompiler,
} from '../cli-runner.ts';
import { versions } from '../versions.ts';

const cli = versions['gemini-cli'];

/** Google's Gemini CLI. */
export const gemini = cliRunner({
  name: 'gemini-cli',
  label: 'Gemini CLI',
  cli,
  wires: ['gemini'],
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  startsWithoutServers: true,
  skillsFolder: '~/.gemini/skills',
  limits: ['turns'],
  stream: { takerFor: geminiLines, logsToStderr: true },
  resume: '--resume',
  launch(context, model) {
    const settingsFile = `${context.home}/gemini-settings.json`;
    return {
      argv: {
        program: [...nodeWithoutCompiler, packagePath(cli, 'bundle/gemini.js')],
        // It shows the exit code of a command only with `--debug`.
        options: ['--output-format', 'stream-json', '--debug', '--yolo', '--model', model.name],
      },
      defaults: {
        // Without this, it would start itself again, without the flags of its Node.
        GEMINI_CLI_NO_RELAUNCH: 'true',
        GEMINI_CLI_TRUST_WORKSPACE: 'true',
      },
      access: {
        GOOGLE_GEMINI_BASE_URL: model.origin,
        GEMINI_API_KEY: model.token,
        GEMINI_CLI_SYSTEM_SETTINGS_PATH: settingsFile,
      },
      // The system's settings override the user's and are merged with them.
      files: [jsonFile(settingsFile, settings(context, model))],
    };
  },
});

/** The context window, in tokens, that it assumes for a model that it does not know. */
const assumedWindow = 1_048_576;

/** The part of the context window at which it compresses the conversation, by default. */
const compressedAt = 0.5;

/** Its own sub-agents. Each names a model of its own, and so do its utilities, in the scope `core`. */
const scopes = ['core', 'codebase_investigator', 'cli_help', 'generalist'];

function settings(context: HarnessContext, model: ModelAccess): unknown {
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
      maxSessionTurns: context.profile.maxTurns,
      compressionThreshold: contextWindow && (compressedAt * contextWindow) / assumedWindow,
    },
    modelConfigs: {
      customOverrides: scopes.map((overrideScope) => ({
        match: { overrideScope },
        modelConfig: { model: name, generateContentConfig: { maxOutputTokens } },
      })),
    },
    mcpServers: mcpServers(context, geminiMcpEntry),
  };
}

const time = z.iso.datetime().transform((text) => Date.parse(text));
const Init = z.object({ session_id: z.string() });
const Message = z.object({ role: z.string(), content: z.string(), timestamp: time });
const Use = z.object({
  tool_id: z.string(),
  tool_name: z.string(),
  parameters: z.looseObject({ command: z.unknown().optional() }),
  timestamp: time,
});
const Result = z.object({
  tool_id: z.string(),
  status: z.string(),
  output: z.string().optional(),
  timestamp: time,
});
const Trouble = z.object({ severity: z.string(), message: z.string(), timestamp: time });
const End = z.object({
  status: z.string(),
  error: z.object({ message: z.string() }).optional(),
  stats: z.object({
    total_tokens: z.number(),
    input_tokens: z.number(),
    output_tokens: z.number(),
    cached: z.number(),
  }),
});

/**
 * Reads `gemini --output-format stream-json --debug`: `init`, pieces of messages, `tool_use` and
 * `tool_result`, `error` for warnings and errors, and one `result`.
 */
function geminiLines(record: TurnRecord): LineTaker {
  let spoken = { text: '', at: 0, own: 0 };
  /** Why the turn ended early, if `result` does not say it. */
  let problem: string | undefined;
  const endMessage = () => {
    record.message(spoken.text, spoken.at, spoken.own);
    spoken = { text: '', at: 0, own: 0 };
  };
  return (line, at) => {
    if (line.type !== 'message') endMessage();
    switch (line.type) {
      case 'init':
        return record.begin(Init.parse(line).session_id);
      case 'message': {
        const { role, content, timestamp } = Message.parse(line);
        if (role !== 'assistant') return;
        if (spoken.text === '') spoken = { text: '', at, own: timestamp };
        spoken.text += content;
        return;
      }
      case 'tool_use': {
        problem = undefined;
        const { tool_id: id, tool_name: name, parameters: input, timestamp } = Use.parse(line);
        return beginCall(record, 'run_shell_command', { id, name, input }, at, timestamp);
      }
      case 'tool_result': {
        const { tool_id: id, status, output = '', timestamp: own } = Result.parse(line);
        const failed = status === 'error';
        return endCall(record, { id, output, failed }, { at, own }, () => outcomeOf(output));
      }
      case 'error': {
        const { severity, message, timestamp } = Trouble.parse(line);
        if (severity === 'error') problem = message;
        return record.note(message, at, timestamp);
      }
      case 'result': {
        const { status, error, stats } = End.parse(line);
        record.usage = usageOf(stats);
        record.status = statusOf(status, error?.message ?? problem);
      }
    }
  };
}

/** The beginning of a message about a failure of the model's API. Nothing else distinguishes it. */
const apiErrorPrefix = '[API Error';

function statusOf(status: string, problem: string | undefined): TurnStatus {
  if (status === 'success' && problem === undefined) return { kind: 'done' };
  const message = problem ?? `Gemini CLI ended with the status ${status}`;
  return message.startsWith(apiErrorPrefix) ? modelFailure(message) : { kind: 'agent-failed', message };
}

/** A shell's exit code for a killed program is 128 plus the signal. */
const signalBase = 128;

/** What follows a command's output. A command that succeeds has no exit code there. */
const endingLines =
  /(?:\nError: (?<error>[^\n]*))?(?:\nExit Code: (?<code>\d+))?(?:\nSignal: (?<signal>\d+))?(?:\nBackground PIDs: [\d, ]*)?\nProcess Group PGID: \d+$/;
/** The text that replaces output beyond 16 MB. */
const cutMarker = /\n\[GEMINI_CLI_WARNING: Output truncated\.[^\n]*\]$/;
const outputPrefix = 'Output: ';

/** How a command ended. A command that was refused, stopped or moved to the background has no such block. */
function outcomeOf(text: string): CommandOutcome {
  const ending = text.startsWith(outputPrefix) ? endingLines.exec(text) : null;
  if (ending === null) return { output: text };
  const { error, code, signal } = ending.groups ?? {};
  const said = text.slice(outputPrefix.length, ending.index);
  const output = said.replace(cutMarker, '');
  const exitCode = signal === undefined ? Number(code ?? 0) : signalBase + Number(signal);
  return {
    ...((error === undefined || code !== undefined) && { exitCode }),
    output: output === '(empty)' ? '' : output,
    truncated: output !== said,
  };
}

/** Reasoning is in the total only. */
function usageOf({ total_tokens, input_tokens, output_tokens, cached }: z.infer<typeof End>['stats']) {
  const outputTokens = Math.max(output_tokens, total_tokens - input_tokens);
  return {
    inputTokens: input_tokens,
    outputTokens,
    cacheReadTokens: cached,
    totalTokens: input_tokens + outputTokens,
  };
}
