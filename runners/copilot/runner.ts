import { z } from 'zod';
import { OutputCapture } from '../../src/base/output-capture.ts';
import { commandOutput } from '../../src/bounds/sandbox.ts';
import { mcpEntry } from '../../src/harness/cli-launch.ts';
import type { LineTaker } from '../../src/harness/cli-stream.ts';
import { harnessFolder, programPath, versionFile } from '../../src/harness/npm-cli.ts';
import type { ModelAccess } from '../../src/harness/runner.ts';
import { modelFailure, type TurnRecord, type TurnStatus } from '../../src/harness/turn-record.ts';
import type { McpServer } from '../../src/suite/mcp-server.ts';
import { cliRunner, jsonFile, mcpServers, variables } from '../cli-runner.ts';
import { versions } from '../versions.ts';

/** The folder into which its program is unpacked. */
const unpacked = `${harnessFolder}/copilot-unpacked`;

/** Copilot CLI does not start without certificates, even if it does not use TLS. Some images have none. */
const certificates = `${harnessFolder}/certificates.pem`;

/** GitHub's Copilot CLI, with a model that the user chooses. */
export const copilot = cliRunner({
  name: 'copilot',
  label: 'Copilot CLI',
  cli: versions.copilot,
  wires: ['openai-chat', 'openai-responses', 'anthropic-messages'],
  continues: true,
  mcp: ['stdio', 'http', 'sse'],
  startsWithoutServers: true,
  skillsFolder: '~/.copilot/skills',
  limits: [],
  stream: {
    takerFor: copilotLines,
    // Pieces of messages and calls, of which the whole follows, and lines that repeat the whole output.
    skips: [
      '{"type":"session.background_tasks_changed"',
      '{"type":"assistant.message_delta"',
      '{"type":"assistant.reasoning_delta"',
      '{"type":"assistant.tool_call_delta"',
      '{"type":"tool.execution_partial_result"',
    ],
  },
  resume: '--resume',
  // Its program is an archive of 235 MB, which it unpacks when it first runs. No trial has to.
  afterInstall: `
home=$(mktemp -d)
HOME="$home" ${programPath(versions.copilot)} --version > /dev/null 2>&1 < /dev/null
mv "$home"/.cache/copilot/pkg/*/* ${unpacked}
rm -rf "$home"
[ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt ${certificates}
# It ends the line that has its version with a full stop.
sed -i 's/[.]$//' ${versionFile(versions.copilot)}
`,
  launch(context, model) {
    const servers = mcpServers(context, serverEntry);
    const hasServers = Object.keys(servers).length > 0;
    const serverFile = `${context.home}/copilot-mcp.json`;
    const options = [
      '--output-format',
      'json',
      '--yolo',
      '--no-ask-user',
      '--disable-client-telemetry',
      ...(hasServers ? ['--additional-mcp-config', `@${serverFile}`] : []),
    ];
    return {
      argv: { options },
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
      files: hasServers ? [jsonFile(serverFile, { mcpServers: servers })] : [],
    };
  },
});

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
  return variables({
    COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: maxOutputTokens,
    COPILOT_PROVIDER_MAX_PROMPT_TOKENS: contextWindow && contextWindow - (maxOutputTokens ?? 0),
  });
}

function serverEntry(server: McpServer): unknown {
  return { type: 'local', ...(mcpEntry(server) as object), tools: ['*'] };
}

const Line = z.object({
  timestamp: z.iso.datetime().transform((text) => Date.parse(text)),
  /** The sub-agent that the line is about. */
  agentId: z.string().optional(),
});
const Message = z.object({ data: z.object({ content: z.string() }) });
const Start = z.object({
  data: z.object({
    toolCallId: z.string(),
    toolName: z.string(),
    arguments: z.looseObject({ command: z.unknown().optional() }).optional(),
  }),
});
const Piece = z.object({ data: z.object({ toolCallId: z.string(), text: z.string() }) });
const End = z.object({
  data: z.object({
    toolCallId: z.string(),
    success: z.boolean(),
    shellExecution: z.object({ exitCode: z.number().nullish() }).optional(),
    result: z.object({ content: z.string() }).optional(),
    error: z.object({ message: z.string() }).optional(),
  }),
});
const Trouble = z.object({ data: z.object({ message: z.string() }) });
const Result = z.object({ sessionId: z.string(), exitCode: z.number() });

/**
 * Reads `copilot --output-format json`: `assistant.message`, `tool.execution_start`, `tool.shell_output`,
 * `tool.execution_complete`, `session.error`, and one `result`. It reports no counts of tokens.
 */
function copilotLines(record: TurnRecord): LineTaker {
  /** What the commands that run have printed so far. */
  const outputs = new Map<string, OutputCapture>();
  let problem: string | undefined;
  return (line, at) => {
    switch (line.type) {
      case 'assistant.turn_start':
        record.status = { kind: 'started' };
        return;
      case 'assistant.message': {
        problem = undefined;
        const { timestamp, agentId } = Line.parse(line);
        const { content } = Message.parse(line).data;
        // A sub-agent's text is not addressed to the user.
        return agentId === undefined ? record.message(content, at, timestamp) : undefined;
      }
      case 'tool.execution_start': {
        const { toolCallId: id, toolName, arguments: given } = Start.parse(line).data;
        const { timestamp } = Line.parse(line);
        const command = given?.command;
        if (toolName !== 'bash' || typeof command !== 'string') {
          return record.beginTool(id, toolName, given, at, timestamp);
        }
        outputs.set(id, new OutputCapture(commandOutput.bytes.kept));
        return record.beginCommand(id, command, at, timestamp);
      }
      case 'tool.shell_output': {
        const { toolCallId, text } = Piece.parse(line).data;
        return outputs.get(toolCallId)?.push(Buffer.from(text));
      }
      case 'tool.execution_complete': {
        const end = End.parse(line).data;
        endTool(record, end, outputs.get(end.toolCallId), { at, own: Line.parse(line).timestamp });
        outputs.delete(end.toolCallId);
        return;
      }
      case 'session.info':
        return record.note(Trouble.parse(line).data.message, at, Line.parse(line).timestamp);
      case 'session.error':
        problem = Trouble.parse(line).data.message;
        return;
      case 'result': {
        const { sessionId, exitCode } = Result.parse(line);
        record.begin(sessionId);
        record.status = statusOf(exitCode, problem);
      }
    }
  };
}

function endTool(
  record: TurnRecord,
  { toolCallId, success, shellExecution, result, error }: z.infer<typeof End>['data'],
  printed: OutputCapture | undefined,
  when: { at: number; own: number },
): void {
  const said = result?.content ?? error?.message ?? '';
  if (printed === undefined) {
    record.endTool(toolCallId, { ...when, output: said, failed: !success });
    return;
  }
  // A command that it refused, or moved to the background, has no exit code.
  if (shellExecution === undefined) {
    record.endCommand(toolCallId, { ...when, output: said });
    return;
  }
  const { text, truncated } = printed.result();
  record.endCommand(toolCallId, {
    ...when,
    exitCode: shellExecution.exitCode ?? undefined,
    output: text,
    truncated,
  });
}

function statusOf(exitCode: number, problem: string | undefined): TurnStatus {
  if (problem !== undefined) return modelFailure(problem);
  if (exitCode === 0) return { kind: 'done' };
  return { kind: 'runner-broke', message: `Copilot CLI ended its turn with ${exitCode} and no reason` };
}
