import { z } from 'zod';
import type { LineTaker } from '../../src/harness/cli-stream.ts';
import type { ModelAccess } from '../../src/harness/runner.ts';
import { modelFailure, type TurnRecord, type TurnStatus } from '../../src/harness/turn-record.ts';
import type { McpServer } from '../../src/suite/mcp-server.ts';
import type { Wire } from '../../src/suite/model-config.ts';
import { beginCall, cliRunner, endCall, jsonFile, mcpServers, serverPatience } from '../cli-runner.ts';
import { versions } from '../versions.ts';

/** opencode. */
export const opencode = cliRunner({
  name: 'opencode',
  label: 'opencode',
  cli: versions.opencode,
  wires: ['openai-chat', 'openai-responses', 'anthropic-messages'],
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  startsWithoutServers: true,
  skillsFolder: '~/.config/opencode/skills',
  limits: [],
  stream: { takerFor: opencodeLines },
  resume: '-s',
  launch(context, model) {
    const configFile = `${context.home}/opencode.json`;
    // Without a title, it asks the model for one.
    const title = ['--title', 'trial'];
    return {
      argv: { options: ['run', '--format', 'json', '--auto', ...title, '-m', `offsite/${model.name}`] },
      defaults: {
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
        OPENCODE_DISABLE_SHARE: '1',
      },
      access: { [keyVariable]: model.token, OPENCODE_CONFIG: configFile },
      files: [jsonFile(configFile, configuration(mcpServers(context, serverEntry), model))],
    };
  },
});

const keyVariable = 'OFFSITE_MODEL_KEY';

/** opencode needs an output limit whenever it has a context window. Tokens. */
const defaultOutput = 32_000;

/** These adapters are part of opencode's binary. It would download any other. */
const adapters: Partial<Record<Wire, string>> = {
  'openai-chat': '@ai-sdk/openai-compatible',
  'openai-responses': '@ai-sdk/openai',
  'anthropic-messages': '@ai-sdk/anthropic',
};

function configuration(mcp: Record<string, unknown>, model: ModelAccess): unknown {
  const { contextWindow: context, maxOutputTokens: output = defaultOutput } = model;
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
        models: { [model.name]: { limit: context && { context, output } } },
      },
    },
    mcp,
  };
}

function serverEntry(server: McpServer): unknown {
  if ('url' in server) {
    const { url, headers } = server;
    // Without this, an answer 401 would make it ask for a login.
    return { type: 'remote', url, enabled: true, oauth: false, headers, timeout: serverPatience };
  }
  const { command, args, env } = server;
  return {
    type: 'local',
    command: [command, ...args],
    environment: env,
    enabled: true,
    timeout: serverPatience,
  };
}

const Line = z.object({ sessionID: z.string(), timestamp: z.number() });
const Spoken = z.object({ part: z.object({ text: z.string() }) });
const Tool = z.object({
  part: z.object({
    tool: z.string(),
    callID: z.string(),
    state: z.object({
      status: z.string(),
      input: z.looseObject({ command: z.unknown().optional() }),
      output: z.string().optional(),
      error: z.string().optional(),
      metadata: z.looseObject({ exit: z.number().nullish(), truncated: z.boolean().optional() }).optional(),
      time: z.object({ start: z.number(), end: z.number() }),
    }),
  }),
});
const Finish = z.object({
  part: z.object({
    reason: z.string(),
    tokens: z.object({
      input: z.number(),
      output: z.number(),
      reasoning: z.number(),
      cache: z.object({ read: z.number(), write: z.number() }),
    }),
  }),
});
const Failure = z.object({
  error: z.object({ name: z.string(), data: z.looseObject({ message: z.string().optional() }).optional() }),
});

/**
 * Reads `opencode run --format json`: steps of `step_start`, `text`, `tool_use` and `step_finish`, and
 * `error`. A tool is reported only after it ended, with its times. A turn ends with the step that calls no
 * tool.
 */
export function opencodeLines(record: TurnRecord): LineTaker {
  return (line, at) => {
    const { sessionID, timestamp } = Line.parse(line);
    record.begin(sessionID);
    switch (line.type) {
      case 'step_start':
        record.status = { kind: 'started' };
        return;
      case 'text':
        return record.message(Spoken.parse(line).part.text, at, timestamp);
      case 'tool_use':
        return takeTool(record, Tool.parse(line).part, at);
      case 'step_finish': {
        const { reason, tokens } = Finish.parse(line).part;
        record.addUsage(usageOf(tokens));
        record.status = reason === 'tool-calls' ? { kind: 'started' } : { kind: 'done' };
        return;
      }
      case 'error':
        record.status = statusOf(Failure.parse(line).error);
    }
  };
}

function takeTool(
  record: TurnRecord,
  { tool, callID: id, state }: z.infer<typeof Tool>['part'],
  at: number,
): void {
  const { output = state.error, metadata, input } = state;
  const { start, end: own } = state.time;
  beginCall(record, 'bash', { id, name: tool, input }, undefined, start);
  endCall(record, { id, output, failed: state.status === 'error' }, { at, own }, () => ({
    exitCode: metadata?.exit ?? undefined,
    output: output === noOutput ? '' : output,
    truncated: metadata?.truncated,
  }));
}

/** Stands for no output. If a command really prints this text, a newline follows. */
const noOutput = '(no output)';

/** The status of a turn, by opencode's name for the error. */
function statusOf({ name, data }: z.infer<typeof Failure>['error']): TurnStatus {
  const message = data?.message ?? name;
  switch (name) {
    case 'APIError':
    case 'ProviderAuthError':
      return modelFailure(message);
    case 'ContextOverflowError':
    case 'MessageOutputLengthError':
    case 'MessageAbortedError':
      return { kind: 'agent-failed', message };
    default:
      return { kind: 'runner-broke', message: `opencode failed with ${name}: ${message}` };
  }
}

/** opencode does not include cached and reasoning tokens in its other counts. */
function usageOf({ input, output, reasoning, cache }: z.infer<typeof Finish>['part']['tokens']) {
  const inputTokens = input + cache.read + cache.write;
  const outputTokens = output + reasoning;
  return {
    inputTokens,
    outputTokens,
    cacheReadTokens: cache.read,
    cacheWriteTokens: cache.write,
    totalTokens: inputTokens + outputTokens,
  };
}
