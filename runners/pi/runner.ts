import { z } from 'zod';
import type { LineTaker } from '../../src/harness/cli-stream.ts';
import type { CommandOutcome } from '../../src/harness/message-lines.ts';
import type { ModelAccess } from '../../src/harness/runner.ts';
import { modelFailure, type TurnRecord, type TurnStatus } from '../../src/harness/turn-record.ts';
import type { Wire } from '../../src/suite/model-config.ts';
import { beginCall, cliRunner, endCall, jsonFile } from '../cli-runner.ts';
import { versions } from '../versions.ts';

/** The coding agent pi. */
export const pi = cliRunner({
  name: 'pi',
  label: 'pi',
  cli: versions.pi,
  wires: ['openai-chat', 'openai-responses', 'anthropic-messages'],
  continues: true,
  mcp: [],
  skillsFolder: '~/.agents/skills',
  limits: [],
  stream: {
    takerFor: piLines,
    // These lines repeat the whole message or output for each new piece.
    skips: ['{"type":"message_update"', '{"type":"tool_execution_update"'],
  },
  resume: '--session',
  launch: (_, model) => ({
    // `--approve`: use the workspace's own settings and skills.
    argv: {
      options: ['--mode', 'json', '-p', '--approve', '--provider', 'offsite', '--model', model.name],
    },
    defaults: { PI_OFFLINE: '1', PI_TELEMETRY: '0' },
    access: { [keyVariable]: model.token },
    files: [
      jsonFile('~/.pi/agent/models.json', provider(model)),
      {
        // The gateway retries.
        ...jsonFile('~/.pi/agent/settings.json', { retry: { enabled: false, provider: { maxRetries: 0 } } }),
        existing: 'kept',
      },
    ],
  }),
});

const keyVariable = 'OFFSITE_MODEL_KEY';

const apis: Partial<Record<Wire, string>> = {
  'openai-chat': 'openai-completions',
  'openai-responses': 'openai-responses',
  'anthropic-messages': 'anthropic-messages',
};

function provider({ wire, origin, name, contextWindow, maxOutputTokens }: ModelAccess): unknown {
  return {
    providers: {
      offsite: {
        baseUrl: wire === 'anthropic-messages' ? origin : `${origin}/v1`,
        api: apis[wire],
        apiKey: `$${keyVariable}`,
        models: [{ id: name, contextWindow, maxTokens: maxOutputTokens }],
      },
    },
  };
}

const Session = z.object({ id: z.string() });
const Message = z.object({
  message: z.looseObject({ role: z.string() }),
});
const Answer = z.object({
  content: z.array(z.looseObject({ type: z.string(), text: z.string().optional() })),
  usage: z.object({
    input: z.number(),
    output: z.number(),
    cacheRead: z.number(),
    cacheWrite: z.number(),
  }),
  stopReason: z.string(),
  errorMessage: z.string().optional(),
  timestamp: z.number(),
});
type Answer = z.infer<typeof Answer>;
const ToolStart = z.object({
  toolCallId: z.string(),
  toolName: z.string(),
  args: z.looseObject({ command: z.unknown().optional() }),
});
const ToolEnd = z.object({
  toolCallId: z.string(),
  result: z.object({
    content: z.array(z.looseObject({ text: z.string().optional() })),
    details: z.looseObject({ truncation: z.looseObject({ truncated: z.boolean() }).optional() }).nullish(),
  }),
  isError: z.boolean(),
});
type ToolEnd = z.infer<typeof ToolEnd>;
const Retry = z.object({ errorMessage: z.string().optional() });

/**
 * Reads `pi --mode json`: `session`, `agent_start`, messages and tool executions, `agent_end`, and
 * `agent_settled` once it neither retries nor compresses. pi exits with 0 whatever happened. The model's last
 * message says how the turn ended.
 */
export function piLines(record: TurnRecord): LineTaker {
  let last: Answer | undefined;
  return (line, at) => {
    switch (line.type) {
      case 'session':
        return record.begin(Session.parse(line).id);
      case 'agent_start':
        record.status = { kind: 'started' };
        return;
      case 'message_end': {
        const { message } = Message.parse(line);
        if (message.role !== 'assistant') return;
        last = Answer.parse(message);
        return takeAnswer(record, last, at);
      }
      case 'tool_execution_start': {
        const { toolCallId: id, toolName: name, args: input } = ToolStart.parse(line);
        return beginCall(record, 'bash', { id, name, input }, at);
      }
      case 'tool_execution_end':
        return endTool(record, ToolEnd.parse(line), at);
      case 'auto_retry_start':
        return record.note(`retries its model after ${Retry.parse(line).errorMessage}`, at);
      case 'agent_settled':
        record.status = statusOf(last);
    }
  };
}

function takeAnswer(record: TurnRecord, { content, usage, stopReason }: Answer, at: number): void {
  for (const { type, text } of content) {
    if (type === 'text' && text !== undefined) record.message(text, at);
  }
  // pi counts no tokens for a failed answer.
  if (stopReason === 'error') return;
  const inputTokens = usage.input + usage.cacheRead + usage.cacheWrite;
  record.addUsage({
    inputTokens,
    outputTokens: usage.output,
    cacheReadTokens: usage.cacheRead,
    cacheWriteTokens: usage.cacheWrite,
    totalTokens: inputTokens + usage.output,
  });
}

function statusOf(last: Answer | undefined): TurnStatus {
  if (last === undefined)
    return { kind: 'runner-broke', message: 'pi ended without an answer from its model' };
  const message = last.errorMessage ?? `pi stopped: ${last.stopReason}`;
  if (last.stopReason === 'error') return modelFailure(message);
  return last.stopReason === 'aborted' ? { kind: 'agent-failed', message } : { kind: 'done' };
}

/** The text that pi adds after the output of a failed command. */
const exitCodeSuffix = /\n\nCommand exited with code (\d+)$/;
/** The text that pi adds for a command that pi stopped. */
const stoppedSuffix = /\n*Command (?:aborted|timed out after [\d.]+ seconds)$/;
/** The text that pi adds to output that it cut. */
const cutMarker = /\n\n\[Showing [^\n]*Full output: [^\n]*\]$/;
/** Stands for no output. If a command really prints this text, a newline follows. */
const noOutput = '(no output)';

function endTool(record: TurnRecord, { toolCallId: id, result, isError }: ToolEnd, at: number): void {
  const text = result.content.map((block) => block.text ?? '').join('');
  const outcome = () => outcomeOf(text, isError, result.details?.truncation?.truncated === true);
  endCall(record, { id, output: text, failed: isError }, { at }, outcome);
}

function outcomeOf(text: string, failed: boolean, isCut: boolean): CommandOutcome {
  const code = failed ? exitCodeSuffix.exec(text)?.[1] : '0';
  const said = failed ? text.replace(exitCodeSuffix, '').replace(stoppedSuffix, '') : text;
  const output = said.replace(cutMarker, '');
  return {
    exitCode: code === undefined ? undefined : Number(code),
    output: output === noOutput ? '' : output,
    truncated: output !== said || isCut,
  };
}
