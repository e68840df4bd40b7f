import { readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import pLimit from 'p-limit';
import { MiB } from '../bounds/channel.ts';
import { workForValidator } from '../bounds/grading.ts';
import type { NewEntry } from '../engine/archive/entries.ts';
import type { Container } from '../engine/container.ts';
import { LineReader } from '../line-reader.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import { execUser, users } from './users.ts';
import { ownFile } from './validator-folder.ts';
import type { Work } from './work/work.ts';

const offsiteRun = readFileSync(new URL('./offsite-run.sh', import.meta.url), 'utf8');

/** Exit code of `offsite-run` where it could not run the program: as `env` has it. */
const cannotRun = 127;
/** As `env` has it for a failure of its own. */
const cannotCall = 125;

const tooLarge = {
  exitCode: cannotCall,
  stdout: '',
  stderr: `offsite-run: a call may pass on no more than ${workForValidator.bytes.call} bytes of standard input\n`,
};

/**
 * Prints what is written to the pipe $1 once it is there, until standard input ends. Opened for both, the
 * pipe has no end of its own.
 */
const listen = `{ until [ -p "$1" ]; do sleep 0.05 2> /dev/null || sleep 1; done; exec cat 0<> "$1"; } &
cat > /dev/null; kill "$!"`;

/** Why a validator is broken that calls for more than there is room for: trying again would end the same. */
export class CallsRefused extends Error {
  override readonly name = 'CallsRefused';
}

interface CallsRequest {
  container: Container;
  folder: string;
  signal: AbortSignal;
}

/**
 * The way by which a program has things of the work run as another user: the command `offsite-run` leaves
 * each call in a folder that only the validator's user may enter, and finds the answer there.
 */
export class ProgramCalls {
  readonly #request: CallsRequest;
  readonly #work: Work;
  readonly #onFailure: (error: unknown) => void;
  readonly #limit = pLimit(workForValidator.count.programs);
  readonly #lines = new LineReader(
    (line) => this.#take(line),
    () => undefined,
    workForValidator.bytes.callName,
  );
  /** Bytes of the calls under way. */
  #held = 0;

  /** @param onFailure told of trouble with the engine, and of {@link CallsRefused} */
  constructor(request: CallsRequest, work: Work, onFailure: (error: unknown) => void) {
    this.#request = request;
    this.#work = work;
    this.#onFailure = (error) => {
      this.#limit.clearQueue();
      onFailure(error);
    };
  }

  /** What has to lie in the validator's folder. */
  static files(folder: string): NewEntry[] {
    return [
      { path: callsOf(folder), folder: true, mode: 0o700, ...users.validator },
      { path: `${folder}/.bin`, folder: true, mode: 0o750, gid: users.validator.gid },
      ownFile(`${folder}/.bin/offsite-run`, offsiteRun, 0o750),
    ];
  }

  /** What makes programs find it. */
  static environment(folder: string, path: string | undefined): Record<string, string> {
    return { OFFSITE_CALLS: callsOf(folder), PATH: `${folder}/.bin${path === undefined ? '' : `:${path}`}` };
  }

  /** Answers calls until `stop` ends. */
  async listen(stop: Readable): Promise<void> {
    const { container, folder, signal } = this.#request;
    await container.exec({
      argv: ['/bin/sh', '-c', listen, 'sh', `${callsOf(folder)}/requests`],
      user: execUser(users.validator),
      cwd: '/',
      stdin: stop,
      capBytes: 0,
      onOutput: (stream, bytes) => {
        if (stream === 'stdout') this.#lines.push(bytes);
      },
      timeoutMs: 2 ** 31 - 1,
      signal,
    });
  }

  #take(name: string): void {
    if (this.#request.signal.aborted || !/^call-\w{10}$/.test(name)) return;
    const call = `${callsOf(this.#request.folder)}/${name}`;
    if (this.#limit.pendingCount < workForValidator.count.waitingCalls)
      this.#limit(() => this.#fulfill(call)).catch(this.#onFailure);
    else this.#onFailure(new CallsRefused('more calls of offsite-run wait than there is room for'));
  }

  async #fulfill(call: string): Promise<void> {
    using held = new DisposableStack();
    const hold = (size: number) => {
      this.#held += size;
      held.defer(() => {
        this.#held -= size;
      });
      refuseLarge('calls of offsite-run have', this.#held, workForValidator.bytes.calls);
    };
    const { container, signal } = this.#request;
    const given = await this.#given(call, hold);
    if (given === 'gone') return;
    const { exitCode, stdout, stderr } = given ? await this.#asked(given) : tooLarge;
    const owner = users.validator;
    const answer: NewEntry[] = [
      { path: `${call}/stdout`, content: stdout, mode: 0o600, ...owner },
      { path: `${call}/stderr`, content: stderr, mode: 0o600, ...owner },
    ];
    await container.put([...answer, { path: `${call}/code`, linkTarget: String(exitCode) }], '/', signal);
  }

  /**
   * The files of a call. Undefined where they are too large: the work can be the reason, so that is no
   * trouble of the engine's. `gone` where the validator has removed its folder, so that nobody waits for an
   * answer.
   */
  async #given(
    call: string,
    hold: (size: number) => void,
  ): Promise<Map<string, Buffer> | undefined | 'gone'> {
    try {
      return await this.#read(call, hold);
    } catch (error) {
      if (error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND') return 'gone';
      throw error;
    }
  }

  async #read(call: string, hold: (size: number) => void): Promise<Map<string, Buffer> | undefined> {
    const { container, signal } = this.#request;
    const given = new Map<string, Buffer>();
    let left = workForValidator.bytes.call;
    for await (const { path, size, content } of container.archive(call, signal)) {
      if (path !== 'words' && path !== 'input') continue;
      left -= size;
      if (left < 0) return undefined;
      hold(size);
      const chunks: Buffer[] = [];
      for await (const chunk of content()) chunks.push(chunk);
      given.set(path, Buffer.concat(chunks));
    }
    return given;
  }

  #asked(given: ReadonlyMap<string, Buffer>) {
    const [cwd = '/', command = '', ...args] = String(given.get('words') ?? '')
      .split('\0')
      .slice(0, -1);
    return this.#run({ cwd, command, args, input: given.get('input') });
  }

  async #run(call: { cwd: string; command: string; args: string[]; input: Buffer | undefined }) {
    const { cwd, command, args, input } = call;
    try {
      // Nothing but the validator's own time ends it: who wants less has the program `timeout`.
      const timeout = Number.MAX_SAFE_INTEGER;
      return await this.#work.run({ command, args, options: { cwd, timeout }, input });
    } catch (error) {
      if (error instanceof OffsiteError) throw error;
      return { exitCode: cannotRun, stdout: '', stderr: `offsite-run: ${messageOf(error)}\n` };
    }
  }
}

function refuseLarge(what: string, size: number, most: number): void {
  if (size > most) throw new CallsRefused(`${what} more than ${most / MiB} MiB`);
}

function callsOf(folder: string): string {
  return `${folder}/.calls`;
}
