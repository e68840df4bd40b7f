import {
  type AuthMethod,
  type ClientConnection,
  type ClientContext,
  client,
  type InitializeResponse,
  methods,
  PROTOCOL_VERSION,
  type McpServer as ProtocolServer,
  RequestError,
  type RequestPermissionRequest,
} from '@agentclientprotocol/sdk';
import { z } from 'zod';
import { startDeadline } from '../../src/base/deadline.ts';
import { messageOf } from '../../src/base/offsite-error.ts';
import { acpMessages, harnessLines } from '../../src/bounds/sandbox.ts';
import type { ExecResult } from '../../src/engine/exec/exec-request.ts';
import { cliEnding } from '../../src/harness/cli-ending.ts';
import { shownOutput } from '../../src/harness/cli-session.ts';
import type {
  CommandSource,
  HarnessContext,
  HarnessRun,
  HarnessSession,
  TurnLimits,
} from '../../src/harness/runner.ts';
import { modelFailure, RecordRoom, TurnRecord, type TurnStatus } from '../../src/harness/turn-record.ts';
import type { HarnessEnding } from '../../src/record/harness.ts';
import { type McpServer, transportOf } from '../../src/suite/mcp-server.ts';
import { AcpMessages } from './messages.ts';
import { type AcpProgram, AgentProcess, Terminals } from './terminals.ts';
import { Updates } from './updates.ts';

/** The protocol's code for an agent that wants to be authenticated first. */
const authRequiredCode = -32000;

interface SessionParts {
  workspace: string;
  servers: Readonly<Record<string, McpServer>>;
}

/**
 * Opens a session with the tool servers; resolves with its id. If the agent asks for authentication, it is
 * asked to use the key in its environment.
 */
async function newSession(
  agent: ClientContext,
  { agentCapabilities, authMethods = [] }: InitializeResponse,
  { workspace, servers }: SessionParts,
): Promise<string> {
  for (const [name, server] of Object.entries(servers)) {
    const transport = transportOf(server);
    if (transport !== 'stdio' && agentCapabilities?.mcpCapabilities?.[transport] !== true)
      throw new Error(`it cannot speak ${transport} to the tool server ${name}`);
  }
  const mcpServers = Object.entries(servers).map(([name, server]) => protocolServer(name, server));
  const open = () => agent.request(methods.agent.session.new, { cwd: workspace, mcpServers });
  const { sessionId } = await open().catch(async (error: unknown) => {
    if (!(error instanceof RequestError) || error.code !== authRequiredCode) throw error;
    await agent.request(methods.agent.authenticate, { methodId: keyMethod(authMethods) });
    return open();
  });
  if (sessionId.length > acpMessages.bytes.id) throw new Error('its session has a name that is too long');
  return sessionId;
}

/** The method that uses a key. Others ask a person. */
function keyMethod(offered: readonly AuthMethod[]): string {
  const method = offered.find(({ id, name }) => /key/i.test(id) || /key/i.test(name));
  if (method) return method.id;
  const ids = offered.map(({ id }) => id).join(', ');
  throw new Error(`it asks for a login, and offers no login with a key: ${ids}`);
}

function protocolServer(name: string, server: McpServer): ProtocolServer {
  if ('url' in server) {
    const headers = pairs(server.headers ?? {});
    return { type: transportOf(server) === 'sse' ? 'sse' : 'http', name, url: server.url, headers };
  }
  return { name, command: server.command, args: server.args, env: pairs(server.env) };
}

function pairs(values: Readonly<Record<string, string>>) {
  return Object.entries(values).map(([name, value]) => ({ name, value }));
}

/** The agent, once it was started. */
interface Agent {
  process: AgentProcess;
  messages: AcpMessages;
  connection: ClientConnection;
  terminals: Terminals;
}

/** A conversation with an agent, which is one process for all turns. */
export class AcpSession implements HarnessSession {
  readonly #context: HarnessContext;
  readonly #program: AcpProgram;
  readonly #room = new RecordRoom();
  #agent: Agent | undefined;
  #sessionId: string | undefined;
  #version: string | undefined;
  #record: TurnRecord;
  /** Undefined between two turns: what the agent reports then belongs to none. */
  #updates: Updates | undefined;
  #hidesCommands = false;

  constructor(context: HarnessContext, program: AcpProgram) {
    this.#context = context;
    this.#program = program;
    this.#record = new TurnRecord(context.clock.now(), this.#room);
  }

  /** The model traffic, if the agent ran commands without naming them. */
  get commandsFrom(): CommandSource {
    return this.#hidesCommands ? 'traffic' : 'report';
  }

  async turn(message: string, limits: TurnLimits): Promise<HarnessRun> {
    limits.signal.throwIfAborted();
    const { clock } = this.#context;
    const record = new TurnRecord(clock.now(), this.#room);
    const updates = new Updates(record);
    this.#record = record;
    this.#updates = updates;
    using deadline = startDeadline(clock, limits.timeoutMs, [limits.signal, limits.stop]);
    const agent = this.#agent ?? this.#start();
    this.#agent = agent;
    const work = this.#work(agent, message);
    const outcome = await Promise.race<PromptOutcome>([
      work,
      agent.process.ended.then((result) => ({ how: 'ended' as const, result })),
      agent.messages.broken.then((reason) => ({ how: 'broken' as const, reason })),
      deadline.reached.then((how) => ({ how })),
    ]);
    updates.tools.isCutShort = true;
    if (outcome.how === 'timed-out' || outcome.how === 'canceled') await this.#cancel(agent, work, limits);
    if (outcome.how !== 'answered') await this.end();
    limits.signal.throwIfAborted();
    agent.messages.end();
    updates.end();
    this.#updates = undefined;
    this.#hidesCommands ||= updates.tools.hidesCommands;
    const result = outcome.how === 'answered' ? undefined : await agent.process.ended;
    const ending = endingOf(outcome, limits);
    const stderr = result?.stderr.text.trim() ?? '';
    if (ending.ended !== 'exited' && stderr !== '') record.note(stderr, clock.now());
    return {
      ending,
      trajectory: record.trajectory.filter((entry) => !updates.tools.doubles.has(entry)),
      events: record.events,
      isCut: !record.isWhole || undefined,
      finalMessage: record.finalMessage,
      version: this.#version?.slice(0, harnessLines.bytes.version),
      // Stdout has the messages of the protocol. It is shown only if the process ended, because it may say
      // why.
      lastOutput:
        result && shownOutput([...(outcome.how === 'ended' ? [result.stdout.text] : []), result.stderr.text]),
    };
  }

  async end(): Promise<void> {
    this.#agent?.terminals.end();
    this.#agent?.connection.close();
    await this.#agent?.process.end();
  }

  #start(): Agent {
    const { container, workspace, clock } = this.#context;
    const { env, commandOf = (line) => line } = this.#program;
    const process = new AgentProcess(this.#context, this.#program, (bytes) => messages.push(bytes));
    const messages = new AcpMessages({
      send: (line) => process.send(line),
      onUpdate: (params, at) => this.#takeUpdate(params, at),
      onNote: (text, at) => this.#record.note(text, at),
      now: () => clock.now(),
    });
    const terminals = new Terminals({
      container,
      workspace,
      clock,
      env,
      commandOf,
      record: () => this.#record,
    });
    const { client: own } = methods;
    const connection = client({ name: 'offsite' })
      .onRequest(own.session.requestPermission, ({ params }) => permit(params))
      .onRequest(own.terminal.create, ({ params }) => terminals.create(params))
      .onRequest(own.terminal.output, ({ params }) => terminals.output(params.terminalId))
      .onRequest(own.terminal.waitForExit, ({ params }) => terminals.waitForExit(params.terminalId))
      .onRequest(own.terminal.kill, ({ params }) => terminals.kill(params.terminalId))
      .onRequest(own.terminal.release, ({ params }) => terminals.release(params.terminalId))
      .connect(messages.stream);
    return { process, messages, connection, terminals };
  }

  /** Never rejects. */
  async #work({ connection: { agent } }: Agent, message: string): Promise<PromptOutcome> {
    const answered = (status: TurnStatus): PromptOutcome => ({ how: 'answered', status });
    try {
      this.#sessionId ??= await this.#open(agent);
    } catch (error) {
      return answered({ kind: 'runner-broke', message: `the agent opened no session: ${textOf(error)}` });
    }
    try {
      const { stopReason } = await agent.request(methods.agent.session.prompt, {
        sessionId: this.#sessionId,
        prompt: [{ type: 'text', text: message }],
      });
      return answered(statusOf(stopReason));
    } catch (error) {
      return answered(modelFailure(textOf(error)));
    }
  }

  async #open(agent: ClientContext): Promise<string> {
    const { workspace, profile } = this.#context;
    const offered: InitializeResponse = await agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      // The agent's own access to files gives the same and is faster: in a sandbox, no editor has unsaved
      // files.
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: true },
      clientInfo: { name: 'offsite', version: '1' },
    });
    this.#version = offered.agentInfo?.version;
    return newSession(agent, offered, { workspace, servers: profile.mcpServers });
  }

  #takeUpdate(params: unknown, at: number): void {
    try {
      this.#updates?.take(params, at);
    } catch (error) {
      if (!(error instanceof z.ZodError)) throw error;
      this.#record.isWhole = false;
      this.#record.note(`an update has an unknown shape: ${z.prettifyError(error).slice(0, 500)}`, at);
    }
  }

  /** Gives the agent a moment to end its turn, so that it says what it did. */
  async #cancel(
    { connection, process }: Agent,
    work: Promise<unknown>,
    { signal }: TurnLimits,
  ): Promise<void> {
    const sessionId = this.#sessionId;
    if (signal.aborted || sessionId === undefined) return;
    void connection.agent.notify(methods.agent.session.cancel, { sessionId }).catch(() => undefined);
    using grace = startDeadline(this.#context.clock, acpMessages.time.cancel, signal);
    await Promise.race([work, process.ended, grace.reached]);
  }
}

/** Allows whatever is asked: the sandbox is the limit. */
function permit({ options }: RequestPermissionRequest) {
  const optionOf = (wanted: string) => options.find(({ kind }) => kind === wanted)?.optionId;
  const optionId = optionOf('allow_always') ?? optionOf('allow_once');
  return {
    outcome:
      optionId === undefined ? { outcome: 'cancelled' as const } : { outcome: 'selected' as const, optionId },
  };
}

/** How the work of a turn ended. */
type PromptOutcome =
  /** The agent reported the end of the turn. */
  | { how: 'answered'; status: TurnStatus }
  /** Its process ended without an answer. */
  | { how: 'ended'; result: ExecResult }
  /** No more messages can be exchanged with it. */
  | { how: 'broken'; reason: string }
  | { how: 'timed-out' | 'canceled' };

const label = 'the agent';

const stopMessages: Readonly<Record<string, string>> = {
  max_tokens: 'an answer of its model reached the limit of tokens',
  max_turn_requests: 'it reached its limit of requests to its model',
  refusal: 'its model refused to continue',
  cancelled: 'it cancelled its turn itself',
};

/** The status that a stop reason of the protocol stands for. */
function statusOf(stopReason: string): TurnStatus {
  if (stopReason === 'end_turn') return { kind: 'done' };
  const message = stopMessages[stopReason] ?? `it stopped for an unknown reason: ${stopReason}`;
  return { kind: 'agent-failed', message };
}

/** What an agent says of an error, with its details. */
function textOf(error: unknown): string {
  const message = messageOf(error);
  if (!(error instanceof RequestError) || error.data === undefined || error.data === null) return message;
  const data = typeof error.data === 'string' ? error.data : JSON.stringify(error.data);
  return `${message}: ${data}`.slice(0, harnessLines.bytes.lastMessage);
}

/** The ending of a turn. There is an exit code only if the agent's process ended by itself. */
function endingOf(outcome: PromptOutcome, limits: TurnLimits): HarnessEnding {
  switch (outcome.how) {
    case 'answered': {
      const { status } = outcome;
      if (!('message' in status)) return { ended: 'exited', exitCode: 0 };
      return { ended: status.kind, message: status.message.slice(0, harnessLines.bytes.lastMessage) };
    }
    case 'ended':
      return cliEnding(
        label,
        outcome.result,
        { status: { kind: 'started' }, problem: undefined, unread: undefined },
        limits,
      );
    case 'broken':
      return { ended: 'agent-failed', message: `${label} ${outcome.reason}` };
    case 'timed-out':
      return { ended: 'timed-out', afterMs: limits.timeoutMs };
    case 'canceled': {
      const { reason } = limits.stop;
      return {
        ended: 'stopped',
        message: reason instanceof Error ? reason.message : 'the agent was stopped',
      };
    }
  }
}
