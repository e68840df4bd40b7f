import { PassThrough } from 'node:stream';
import { harnessLines } from '../../src/bounds/sandbox.ts';
import type { ExecResult } from '../../src/engine/exec/exec-request.ts';
import type { HarnessContext } from '../../src/harness/runner.ts';

/** Milliseconds: longer than any trial. The turns have deadlines of their own. */
export const noTimeoutMs = 2 ** 31 - 1;

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
