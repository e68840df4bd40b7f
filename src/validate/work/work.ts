import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { infrastructureError } from '../../base/offsite-error.ts';
import { workForValidator } from '../../bounds/grading.ts';
import type { Container } from '../../engine/container.ts';
import { isSuccess } from '../../engine/exec/exec-request.ts';
import type { RunOptions, RunResult } from '../sandboxed/api.ts';
import { execUser, users } from '../validator-folder.ts';

const endWork = readFileSync(new URL('./end-work.sh', import.meta.url), 'utf8');

/**
 * A new file in a folder with the `s` mode gets the folder's group, no matter who creates it. Here that is
 * the validator's group.
 */
const giveToNobody = `chown -Rh ${users.work.uid}:${users.validator.gid} "$1" && chmod -R g+rwX "$1" &&
find "$1" -type d -exec chmod g+s {} +`;
/** Without root, files of other users stay as they are. */
const openToAll = 'chmod -R a+rwX "$1" || :';

export interface WorkRequest {
  sandbox: WorkSandbox;
  workspace: string;
  /** The environment of every program. It contains nothing of the validator's own. */
  env: Record<string, string>;
  clock: Clock;
  timeoutMs: number;
  signal: AbortSignal;
}

export interface ProgramCall {
  command: string;
  args: readonly string[];
  options: Pick<RunOptions, 'cwd' | 'env' | 'input' | 'timeout'>;
  /** Used instead of `options.input` if the input is not text. */
  input?: Buffer | undefined;
}

/**
 * Runs programs of the work for a validator, as a user or in a sandbox that cannot read, write or signal
 * anything of the validator's. When nobody waits for a program any more, all processes of the work are ended,
 * so that none of them acts while the validator inspects what they made. Throws if the engine fails.
 */
export class Work {
  readonly #request: WorkRequest;
  readonly #home = `/tmp/work-${randomBytes(6).toString('hex')}`;
  /** Epoch milliseconds. The time after it is kept for the validator's verdict. */
  readonly #endsAt: number;
  /** The number of programs that a caller waits for. */
  #running = 0;
  /** Settles when the work's processes have been ended. */
  #ending: Promise<void> = Promise.resolve();

  constructor(request: WorkRequest) {
    this.#request = request;
    this.#endsAt =
      request.clock.now() +
      request.timeoutMs -
      Math.min(workForValidator.time.verdict, request.timeoutMs / 2);
  }

  /**
   * Gives the workspace to the work's user. The validator's user may read and write it too, because it may
   * have to put tests beside the work.
   */
  async begin(): Promise<void> {
    const { sandbox, workspace, signal } = this.#request;
    if (sandbox.kind === 'apart') return;
    const isNobody = sandbox.user === 'nobody';
    if (isNobody) {
      const folders = [this.#home, `${this.#home}/tmp`].map((path) => ({
        path,
        folder: true as const,
        mode: 0o700,
        ...users.work,
      }));
      await sandbox.container.put(folders, '/', signal);
    }
    const result = await sandbox.container.exec({
      argv: ['/bin/sh', '-c', isNobody ? giveToNobody : openToAll, 'sh', workspace],
      user: sandbox.user === 'nobody' ? '0:0' : sandbox.user.own,
      cwd: '/',
      timeoutMs: workForValidator.time.giving,
      signal,
    });
    signal.throwIfAborted();
    if (isSuccess(result)) return;
    const said = result.stderr.text.trim();
    throw infrastructureError(
      'GRADING_WORKSPACE',
      `the workspace could not be given to the work's user: ${said}`,
    );
  }

  /** Rejects with a plain `Error` if the program or folder does not exist. */
  async run(call: ProgramCall): Promise<RunResult> {
    await this.#ending;
    this.#running += 1;
    try {
      return await this.#run(call);
    } finally {
      this.#running -= 1;
      if (this.#running === 0) await this.end();
    }
  }

  /** Ends all processes of the work, including those that a caller waits for. */
  end(): Promise<void> {
    this.#ending = this.#ending.then(() => this.#endAll());
    return this.#ending;
  }

  async #run({
    command,
    args,
    options,
    input = Buffer.from(options.input ?? ''),
  }: ProgramCall): Promise<RunResult> {
    const { sandbox, workspace, env, clock, timeoutMs, signal } = this.#request;
    const [stdout, stderr] = [
      new Head(workForValidator.bytes.output),
      new Head(workForValidator.bytes.output),
    ];
    const over = new AbortController();
    const running = sandbox.container.exec({
      argv: [command, ...args],
      ...(sandbox.kind === 'beside' && { user: userOf(sandbox) }),
      cwd: posix.resolve(workspace, options.cwd ?? '.'),
      env: { ...env, ...this.#ownFolders(), ...options.env },
      stdin: input,
      capBytes: 0,
      onOutput: (stream, bytes) => (stream === 'stdout' ? stdout : stderr).push(bytes),
      // Our own deadline comes first: when the engine ends one of several commands, it may end the validator
      // too.
      timeoutMs: 2 * timeoutMs + workForValidator.time.ending,
      signal,
    });
    clock
      .sleep(
        Math.max(0, Math.min(options.timeout ?? workForValidator.time.program, this.#endsAt - clock.now())),
        over.signal,
      )
      .then(() => this.end())
      // The program ended before the deadline. If ending the processes fails, it fails again when the program
      // has ended.
      .catch(() => undefined);
    const result = await running.finally(() => over.abort());
    signal.throwIfAborted();
    // The message that Node gives for a missing program or folder.
    if (result.ended === 'not-started') throw new Error(`spawn ${command} ENOENT`);
    return {
      exitCode: result.exitCode ?? 137,
      stdout: stdout.text(),
      stderr: stderr.text(),
      truncated: stdout.isCut || stderr.isCut,
    };
  }

  #ownFolders(): Record<string, string> {
    const { sandbox } = this.#request;
    if (sandbox.kind === 'apart' || sandbox.user !== 'nobody') return {};
    return { HOME: this.#home, TMPDIR: `${this.#home}/tmp` };
  }

  async #endAll(): Promise<void> {
    const { sandbox, workspace, signal } = this.#request;
    if (sandbox.kind === 'apart') {
      await sandbox.container.killAll(signal);
      return;
    }
    for (let tries = 0; tries < workForValidator.count.endingTries; tries += 1) {
      const { ended, exitCode } = await sandbox.container.exec({
        argv: ['/bin/sh', '-c', endWork, 'sh', workspace, String(users.validator.gid)],
        user: userOf(sandbox),
        cwd: '/',
        timeoutMs: workForValidator.time.ending,
        signal,
      });
      signal.throwIfAborted();
      if (ended === 'exited' && exitCode === 0) return;
    }
    // This ends the validator too.
    await sandbox.container.killAll(signal);
  }
}

function userOf({ user }: Extract<WorkSandbox, { kind: 'beside' }>): string {
  return user === 'nobody' ? execUser(users.work) : user.own;
}

/** Keeps the beginning of a stream. */
class Head {
  readonly #chunks: Buffer[] = [];
  #room: number;
  isCut = false;

  constructor(room: number) {
    this.#room = room;
  }

  /** Copies what it keeps of the buffer. */
  push(bytes: Buffer): void {
    if (bytes.length > this.#room) this.isCut = true;
    if (this.#room > 0) this.#chunks.push(Buffer.from(bytes.subarray(0, this.#room)));
    this.#room = Math.max(0, this.#room - bytes.length);
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString();
  }
}

/**
 * The sandbox in which a validator's `run` starts programs.
 *
 * - `beside`: in the validator's own sandbox, as another user. `nobody`: the workspace is given to the user
 * nobody. `own`: in a sandbox without root, the work runs as the sandbox's own user, who owns the workspace
 * already.
 * - `apart`: in another sandbox, the one the agent worked in, as that sandbox's user.
 */
export type WorkSandbox =
  | { kind: 'beside'; container: Container; user: 'nobody' | { own: string } }
  | { kind: 'apart'; container: Container };
