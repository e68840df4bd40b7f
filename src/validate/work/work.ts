import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { workForValidator } from '../../bounds/grading.ts';
import type { Clock } from '../../clock.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { RunOptions, RunResult } from '../sandboxed/api.ts';
import { execUser, users } from '../users.ts';
import { Head } from './head.ts';
import type { WorkSandbox } from './work-sandbox.ts';

const endWork = readFileSync(new URL('./end-work.sh', import.meta.url), 'utf8');

/** What lies in a folder with `s` is in the folder's group, whoever makes it: the validator's. */
const giveToNobody = `chown -Rh ${users.work.uid}:${users.validator.gid} "$1" && chmod -R g+rwX "$1" &&
find "$1" -type d -exec chmod g+s {} +`;
/** Where there is no root, what is another's stays as it is. */
const openToAll = 'chmod -R a+rwX "$1" || :';

export interface WorkRequest {
  sandbox: WorkSandbox;
  workspace: string;
  /** Of every program; nothing of the validator's own. */
  env: Record<string, string>;
  clock: Clock;
  timeoutMs: number;
  signal: AbortSignal;
}

export interface ProgramCall {
  command: string;
  args: readonly string[];
  options: Pick<RunOptions, 'cwd' | 'env' | 'input' | 'timeout'>;
  /** In place of the options' input, where that is no text. */
  input?: Buffer | undefined;
}

/**
 * Runs programs of the work for a validator: as a user, or in a sandbox, from which nothing of the
 * validator's can be read, written or signaled. Once nobody waits for a program any more, no process of the
 * work is left, so that nothing of it acts while the validator looks at what it made. Throws where the engine
 * fails.
 */
export class Work {
  readonly #request: WorkRequest;
  readonly #home = `/tmp/work-${randomBytes(6).toString('hex')}`;
  /** Epoch milliseconds; the validator needs some time for its verdict. */
  readonly #endsAt: number;
  /** Programs that somebody waits for. */
  #running = 0;
  /** Settles when processes are not being ended any more. */
  #ending: Promise<void> = Promise.resolve();

  constructor(request: WorkRequest) {
    this.#request = request;
    this.#endsAt =
      request.clock.now() +
      request.timeoutMs -
      Math.min(workForValidator.time.verdict, request.timeoutMs / 2);
  }

  /**
   * Gives the workspace to the work's user, and lets the validator's read and write it too: tests may have to
   * be put beside the work.
   */
  async begin(): Promise<void> {
    const { sandbox, workspace, signal } = this.#request;
    if (sandbox.kind === 'apart') return;
    const isNobody = sandbox.user === 'nobody';
    if (isNobody) {
      const folders = [this.#home, `${this.#home}/tmp`].map((path) => ({
        ...{ path, folder: true as const, mode: 0o700, ...users.work },
      }));
      await sandbox.container.put(folders, '/', signal);
    }
    const { ended, exitCode, stderr } = await sandbox.container.exec({
      argv: ['/bin/sh', '-c', isNobody ? giveToNobody : openToAll, 'sh', workspace],
      user: sandbox.user === 'nobody' ? '0:0' : sandbox.user.own,
      cwd: '/',
      timeoutMs: workForValidator.time.giving,
      signal,
    });
    signal.throwIfAborted();
    if (ended === 'exited' && exitCode === 0) return;
    throw new OffsiteError(`the workspace could not be given to the work's user: ${stderr.text.trim()}`, {
      code: 'GRADING_WORKSPACE',
      kind: 'infrastructure',
    });
  }

  /** Rejects with a plain error where there is no such program or folder. */
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

  /** Ends all that the work has running, what somebody waits for included. */
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
      // Ours comes first: the engine's way to end one of several commands may end the validator too.
      timeoutMs: 2 * timeoutMs + workForValidator.time.ending,
      signal,
    });
    clock
      .sleep(
        Math.max(0, Math.min(options.timeout ?? workForValidator.time.program, this.#endsAt - clock.now())),
        over.signal,
      )
      .then(() => this.end())
      // The program was quicker. Where the ending fails, it does so again when the program has ended.
      .catch(() => undefined);
    const result = await running.finally(() => over.abort());
    signal.throwIfAborted();
    // As Node says of a program, or a folder, that is not there.
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
    // The validator goes down with it.
    await sandbox.container.killAll(signal);
  }
}

function userOf({ user }: Extract<WorkSandbox, { kind: 'beside' }>): string {
  return user === 'nobody' ? execUser(users.work) : user.own;
}
