import { PassThrough } from 'node:stream';
import {
  type CreateTerminalRequest,
  RequestError,
  type TerminalExitStatus,
  type TerminalOutputResponse,
} from '@agentclientprotocol/sdk';
import { messageOf } from '../../src/base/offsite-error.ts';
import { OutputCapture } from '../../src/base/output-capture.ts';
import { acpMessages, commandOutput, harnessLines } from '../../src/bounds/sandbox.ts';
import type { ExecResult } from '../../src/engine/exec/exec-request.ts';
import type { HarnessContext } from '../../src/harness/runner.ts';
import type { TurnRecord } from '../../src/harness/turn-record.ts';
import { shellWord } from '../../src/text/escape.ts';
import { scriptOfShell } from '../cli-runner.ts';

interface Terminal {
  stop: AbortController;
  output: OutputCapture;
  /** Bytes of output that the agent wants to see. */
  limit: number;
  status: TerminalExitStatus | undefined;
  ended: Promise<TerminalExitStatus>;
}

interface TerminalContext extends Pick<HarnessContext, 'container' | 'workspace' | 'clock'> {
  env: Record<string, string>;
  commandOf(line: string): string;
  /** The record of the present turn. */
  record(): TurnRecord;
}

/**
 * The terminals that an agent asks for: commands in its sandbox, as its user. Each is a command of the trial,
 * with its exit code.
 */
export class Terminals {
  readonly #context: TerminalContext;
  readonly #terminals = new Map<string, Terminal>();
  #count = 0;

  constructor(context: TerminalContext) {
    this.#context = context;
  }

  create(request: CreateTerminalRequest): { terminalId: string } {
    const { container, workspace, env, clock, commandOf } = this.#context;
    const { command, args = [], env: added = [], cwd, outputByteLimit } = request;
    if (this.#terminals.size >= acpMessages.count.terminals)
      throw RequestError.invalidRequest(undefined, 'too many terminals are not released');
    const argv = args.length === 0 ? ['/bin/sh', '-c', command] : [command, ...args];
    const own = Object.fromEntries(added.map(({ name, value }) => [name, value]));
    const problem = problemOf([...argv, ...Object.entries(own).flat()], cwd ?? workspace);
    if (problem !== undefined) throw RequestError.invalidParams(undefined, problem);

    this.#count += 1;
    const terminalId = `terminal-${this.#count}`;
    const output = new OutputCapture(commandOutput.bytes.kept);
    const stop = new AbortController();
    const record = this.#context.record();
    const begunAt = clock.now();
    record.beginCommand(terminalId, commandOf(commandText(command, args)), begunAt, begunAt);
    const running = container.exec({
      argv,
      env: { ...env, ...own },
      cwd: cwd ?? workspace,
      timeoutMs: noTimeoutMs,
      signal: stop.signal,
      capBytes: 0,
      onOutput: (_, bytes) => output.push(bytes),
    });
    const limit = outputByteLimit ?? commandOutput.bytes.kept;
    // If the engine has failed, the agent's own process reports it.
    const outcome = running.catch((error: unknown) => ({
      ended: 'failed' as const,
      message: messageOf(error),
    }));
    const ended = outcome.then((result) => {
      if ('message' in result) output.push(Buffer.from(result.message));
      const status = statusOf(result);
      terminal.status = status;
      const { text, truncated } = output.result();
      const exitCode = status.exitCode ?? undefined;
      const at = clock.now();
      record.endCommand(terminalId, { at, own: at, exitCode, output: text, truncated });
      return status;
    });
    const terminal: Terminal = { stop, output, status: undefined, limit, ended };
    this.#terminals.set(terminalId, terminal);
    return { terminalId };
  }

  output(terminalId: string): TerminalOutputResponse {
    const { output, limit, status } = this.#terminal(terminalId);
    const { text, truncated } = output.result();
    const bytes = Buffer.from(text);
    return {
      // Only whole characters are decoded: the bytes of a character that was cut are left out.
      output: bytes.length <= limit ? text : tailOf(bytes, limit),
      truncated: truncated || bytes.length > limit,
      ...(status && { exitStatus: status }),
    };
  }

  waitForExit(terminalId: string): Promise<TerminalExitStatus> {
    return this.#terminal(terminalId).ended;
  }

  kill(terminalId: string): void {
    this.#terminal(terminalId).stop.abort();
  }

  release(terminalId: string): void {
    this.kill(terminalId);
    this.#terminals.delete(terminalId);
  }

  /** Ends all commands. */
  end(): void {
    for (const { stop } of this.#terminals.values()) stop.abort();
  }

  #terminal(id: string): Terminal {
    const terminal = this.#terminals.get(id);
    if (!terminal) throw RequestError.resourceNotFound(`terminal ${id.slice(0, acpMessages.bytes.id)}`);
    return terminal;
  }
}

function statusOf(result: ExecResult | { ended: 'failed' }): TerminalExitStatus {
  if (result.ended === 'exited') return { exitCode: result.exitCode };
  // The exit code with which a shell reports this.
  return result.ended === 'not-started' ? { exitCode: 127 } : { signal: 'SIGKILL' };
}

/** Why the engine could not start a command. */
function problemOf(texts: readonly string[], cwd: string): string | undefined {
  if ([...texts, cwd].some((text) => text.includes('\0'))) return 'a NUL character is in the command';
  if (!cwd.startsWith('/')) return 'cwd is not an absolute path';
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), Buffer.byteLength(cwd));
  return bytes > acpMessages.bytes.command ? 'the command is too long' : undefined;
}

function tailOf(bytes: Buffer, limit: number): string {
  let start = bytes.length - limit;
  while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return bytes.toString('utf8', start);
}

/** What the model asked for: the script of a shell, or the command with its arguments. */
function commandText(command: string, args: readonly string[]): string {
  const words = args.map((arg) => (/^[\w@%+=:,./-]+$/.test(arg) ? arg : shellWord(arg)));
  return scriptOfShell([command, ...args]) ?? [command, ...words].join(' ');
}

/** Milliseconds: longer than any trial. The turns have deadlines of their own. */
const noTimeoutMs = 2 ** 31 - 1;

/** What starts an agent that speaks the protocol. */
export interface AcpProgram {
  argv: readonly string[];
  /** The environment of the agent's terminals and of the agent itself, for which `own` overrides it. */
  env: Record<string, string>;
  own?: Record<string, string>;
  /** Returns the part of a terminal's command line that the agent's model asked for. Default: all of it. */
  commandOf?(line: string): string;
}

/** The agent in its sandbox, and its standard streams. */
export class AgentProcess {
  /** Rejects only if the engine fails. */
  readonly ended: Promise<ExecResult>;
  readonly #input = new PassThrough();
  readonly #stop = new AbortController();

  constructor(
    { container, workspace }: HarnessContext,
    { argv, env, own }: AcpProgram,
    onStdout: (bytes: Buffer) => void,
  ) {
    // Writing fails once the agent has ended.
    this.#input.on('error', () => undefined);
    this.ended = container.exec({
      argv,
      env: { ...env, ...own },
      cwd: workspace,
      stdin: this.#input,
      timeoutMs: noTimeoutMs,
      signal: this.#stop.signal,
      capBytes: harnessLines.bytes.kept,
      onOutput: (from, bytes) => {
        if (from === 'stdout') onStdout(bytes);
      },
    });
    this.ended.catch(() => undefined);
  }

  /** Returns the number of bytes that the agent has not read. */
  send(text: string): number {
    if (!this.#input.writable) return 0;
    this.#input.write(text);
    return this.#input.readableLength + this.#input.writableLength;
  }

  /** Kills it and everything that it started. */
  async end(): Promise<void> {
    this.#stop.abort();
    await this.ended;
  }
}
