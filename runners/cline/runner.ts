import { z } from 'zod';
import { OutputCapture } from '../../src/base/output-capture.ts';
import { commandOutput } from '../../src/bounds/sandbox.ts';
import type { LineTaker } from '../../src/harness/cli-stream.ts';
import type { CommandOutcome } from '../../src/harness/message-lines.ts';
import { programPath } from '../../src/harness/npm-cli.ts';
import type { ModelAccess } from '../../src/harness/runner.ts';
import { modelFailure, type TurnRecord, type TurnStatus } from '../../src/harness/turn-record.ts';
import { type McpServer, transportOf } from '../../src/suite/mcp-server.ts';
import { cliRunner, jsonFile, mcpServers, serverPatience, type When } from '../cli-runner.ts';
import { versions } from '../versions.ts';

/** Cline. With `--json`, it takes no second message. */
export const cline = cliRunner({
  name: 'cline',
  label: 'Cline',
  cli: versions.cline,
  // On other wires, it asks for tools that the model's provider would run, which the gateway refuses.
  wires: ['openai-chat'],
  continues: false,
  mcp: ['stdio', 'http', 'sse'],
  startsWithoutServers: true,
  skillsFolder: '~/.agents/skills',
  limits: [],
  stream: { takerFor: clineLines },
  launch(context, model) {
    const pathOf = (name: string) => `${context.home}/cline-${name}.json`;
    return {
      argv: () => [
        programPath(versions.cline),
        '--json',
        '--auto-approve',
        'true',
        ...context.profile.args,
        // Cline reads the prompt from stdin only if it also has an argument. It joins the two and trims the
        // result.
        ' ',
      ],
      defaults: {
        CLINE_GLOBAL_SETTINGS_PATH: pathOf('settings'),
        CLINE_MCP_SETTINGS_PATH: pathOf('mcp'),
        // Without it, a daemon runs the session.
        CLINE_SESSION_BACKEND_MODE: 'local',
      },
      access: { OPENAI_API_KEY: model.token, CLINE_PROVIDER_SETTINGS_PATH: pathOf('providers') },
      files: [
        jsonFile(pathOf('providers'), providerSettings(model)),
        jsonFile(pathOf('settings'), { telemetryOptOut: true, autoUpdateEnabled: false }),
        jsonFile(pathOf('mcp'), { mcpServers: mcpServers(context, serverEntry) }),
      ],
    };
  },
});

const provider = 'openai-compatible';

function providerSettings({ name, origin, contextWindow, maxOutputTokens: maxTokens }: ModelAccess): unknown {
  const settings = { provider, model: name, baseUrl: `${origin}/v1`, contextWindow, maxTokens };
  return {
    version: 1,
    lastUsedProvider: provider,
    modes: {},
    providers: { [provider]: { settings, updatedAt: '2026-01-01T00:00:00.000Z', tokenSource: 'manual' } },
  };
}

function serverEntry(server: McpServer): unknown {
  const timeout = serverPatience / 1000;
  if (!('url' in server)) return { ...server, timeout };
  const { url, headers } = server;
  return { type: transportOf(server) === 'sse' ? 'sse' : 'streamableHttp', url, headers, timeout };
}

const Hook = z.object({ hookEventName: z.string(), taskId: z.string() });
const Line = z.object({
  ts: z.iso.datetime().transform((text) => Date.parse(text)),
  event: z.looseObject({ type: z.string(), contentType: z.string().optional() }),
});
const Spoken = z.object({ text: z.string() });
const Start = z.object({
  toolName: z.string(),
  toolCallId: z.string(),
  input: z.looseObject({ commands: z.unknown().optional() }),
});
const Update = z.object({
  toolCallId: z.string(),
  update: z.looseObject({
    commandIndex: z.number(),
    chunk: z.string().optional(),
    truncated: z.boolean().optional(),
  }),
});
const End = z.object({ toolCallId: z.string(), output: z.unknown(), error: z.string().optional() });
const Trouble = z.object({ error: z.object({ message: z.string() }), recoverable: z.boolean() });
const Outputs = z.array(z.object({ result: z.string(), success: z.boolean(), error: z.string().optional() }));
const Result = z.object({
  finishReason: z.string(),
  text: z.string().optional(),
  aggregateUsage: z.object({
    inputTokens: z.number(),
    outputTokens: z.number(),
    cacheReadTokens: z.number(),
    cacheWriteTokens: z.number(),
  }),
});

/** The commands of one call that are still running: what each has printed so far. */
type Running = { printed: OutputCapture; isWhole: boolean }[];

/**
 * Reads `cline --json`: `hook_event`, `agent_event` with messages, tool calls and pieces of outputs, and one
 * `run_result`. One call may run several commands at the same time.
 */
function clineLines(record: TurnRecord): LineTaker {
  const calls = new Map<string, Running>();
  return (line, at) => {
    switch (line.type) {
      case 'hook_event': {
        const { hookEventName, taskId } = Hook.parse(line);
        if (hookEventName === 'agent_start' && record.sessionId === undefined) record.begin(taskId);
        return;
      }
      case 'agent_event': {
        const { ts, event } = Line.parse(line);
        return takeEvent(record, calls, event, { at, own: ts });
      }
      case 'run_result': {
        const { finishReason, text, aggregateUsage } = Result.parse(line);
        const { inputTokens, outputTokens } = aggregateUsage;
        record.usage = { ...aggregateUsage, totalTokens: inputTokens + outputTokens };
        record.status = statusOf(finishReason, text);
      }
    }
  };
}

function takeEvent(
  record: TurnRecord,
  calls: Map<string, Running>,
  event: z.infer<typeof Line>['event'],
  { at, own }: When,
): void {
  switch (`${event.type} ${event.contentType ?? ''}`) {
    case 'content_end text':
      record.message(Spoken.parse(event).text, at, own);
      break;
    case 'content_start tool':
      begin(record, calls, Start.parse(event), { at, own });
      break;
    case 'content_update tool':
      takePiece(calls, event);
      break;
    case 'content_end tool': {
      const end = End.parse(event);
      endCall(record, calls.get(end.toolCallId), end, { at, own });
      calls.delete(end.toolCallId);
      break;
    }
    case 'error ': {
      const { error, recoverable } = Trouble.parse(event);
      if (recoverable) record.note(error.message, at, own);
    }
  }
}

function begin(
  record: TurnRecord,
  calls: Map<string, Running>,
  { toolCallId, toolName, input }: z.infer<typeof Start>,
  { at, own }: When,
): void {
  const commands =
    toolName === 'run_commands' ? z.array(z.string()).safeParse(input.commands).data : undefined;
  if (commands === undefined) {
    record.beginTool(toolCallId, toolName, input, at, own);
    return;
  }
  for (const [index, command] of commands.entries()) {
    record.beginCommand(commandId(toolCallId, index), command, at, own);
  }
  const running = commands.map(() => ({
    printed: new OutputCapture(commandOutput.bytes.kept),
    isWhole: true,
  }));
  calls.set(toolCallId, running);
}

function commandId(callId: string, index: number): string {
  return `${callId} ${index}`;
}

function takePiece(calls: Map<string, Running>, event: unknown): void {
  // Updates of other tools have other shapes.
  const given = z.object({ toolCallId: z.string() }).parse(event);
  const running = calls.get(given.toolCallId);
  if (running === undefined) return;
  const { commandIndex, chunk = '', truncated } = Update.parse(event).update;
  const command = running[commandIndex];
  if (command === undefined) return;
  command.printed.push(Buffer.from(chunk));
  if (truncated) command.isWhole = false;
}

function endCall(
  record: TurnRecord,
  running: Running | undefined,
  { toolCallId, output, error }: z.infer<typeof End>,
  when: When,
): void {
  const said = error ?? (typeof output === 'string' ? output : JSON.stringify(output));
  if (running === undefined) {
    record.endTool(toolCallId, { ...when, output: said, failed: error !== undefined });
    return;
  }
  const outputs = Outputs.safeParse(output).data;
  for (const [index, command] of running.entries()) {
    const result = outputs?.[index];
    const outcome = result === undefined ? { output: said } : outcomeOf(result, command);
    record.endCommand(commandId(toolCallId, index), { ...when, ...outcome });
  }
}

/**
 * What Cline puts before the output of a command that failed, and in place of the middle of a long output.
 */
const failedPrefix = /^\[Command exited with code \d+\]\n?/;
const cutMarker = /\n\[\.\.\. output truncated: \d+ chars total\.[^\n]*\]\n/;

/** How a command ended. The pieces have its output as it was printed, but a large piece is cut. */
function outcomeOf(
  { result, success, error = '' }: z.infer<typeof Outputs>[number],
  { printed, isWhole }: Running[number],
): CommandOutcome {
  const code = /^Command exited with code (\d+)$/.exec(error)?.[1];
  const exitCode = success ? 0 : code === undefined ? undefined : Number(code);
  const ending = exitCode === undefined ? {} : { exitCode };
  if (exitCode === undefined || !isWhole) {
    const output = success ? result : result.replace(failedPrefix, '');
    return { ...ending, output, truncated: cutMarker.test(result) };
  }
  const { text, truncated } = printed.result();
  return { ...ending, output: text, truncated };
}

function statusOf(reason: string, text = `Cline ended: ${reason}`): TurnStatus {
  if (reason === 'completed') return { kind: 'done' };
  return reason === 'error' ? modelFailure(text) : { kind: 'agent-failed', message: text };
}
