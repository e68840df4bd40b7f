import { readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import pLimit from 'p-limit';
import { LineReader } from '../base/line-reader.ts';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { MiB } from '../bounds/channel.ts';
import { workForValidator } from '../bounds/grading.ts';
import type { NewEntry } from '../engine/archive/entries.ts';
import type { Container } from '../engine/container.ts';
import { execUser, ownFile, users } from './validator-folder.ts';
import type { Work } from './work/work.ts';

const offsiteRun = readFileSync(new URL('./offsite-run.sh', import.meta.url), 'utf8');

/** Exit code of `offsite-run` if it could not run the program, as with `env`. */
const cannotRun = 127;
/** Exit code of `offsite-run` if it failed itself, as with `env`. */
const cannotCall = 125;

const tooLarge = {
  exitCode: cannotCall,
  stdout: '',
  stderr: `offsite-run: a call may send at most ${workForValidator.bytes.call} bytes of standard input\n`,
};

/**
 * Prints what is written to the pipe $1, once it exists, until standard input ends. `0<>` opens the pipe for
 * reading and writing, so it never reports an end.
 */
const listen = `{ until [ -p "$1" ]; do sleep 0.05 2> /dev/null || sleep 1; done; exec cat 0<> "$1"; } &
cat > /dev/null; kill "$!"`;

/**
 * A validator's calls of `offsite-run` exceed a limit. The validator is broken, because a retry would end the
 * same way.
 */
export class CallsRefused extends Error {
  override readonly name = 'CallsRefused';
}

interface CallsRequest {
  container: Container;
  folder: string;
  signal: AbortSignal;
}

/**
 * Lets a validator that is a program run things of the work as another user. The command `offsite-run` writes
 * each call to a folder that only the validator's user may enter, and reads the answer there.
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
  /** Bytes of the calls in progress. */
  #held = 0;

  /** @param onFailure called for failures of the engine, and with {@link CallsRefused} */
  constructor(request: CallsRequest, work: Work, onFailure: (error: unknown) => void) {
    this.#request = request;
    this.#work = work;
    this.#onFailure = (error) => {
      this.#limit.clearQueue();
      onFailure(error);
    };
  }

  /** The entries that must be in the validator's folder. */
  static files(folder: string): NewEntry[] {
    return [
      { path: callsOf(folder), folder: true, mode: 0o700, ...users.validator },
      { path: `${folder}/.bin`, folder: true, mode: 0o750, gid: users.validator.gid },
      ownFile(`${folder}/.bin/offsite-run`, offsiteRun, 0o750),
    ];
  }

  /** The environment in which programs find `offsite-run`. */
  static environment(folder: string, path: string | undefined): Record<string, string> {
    return { OFFSITE_CALLS: callsOf(folder), PATH: `${folder}/.bin${path === undefined ? '' : `:${path}`}` };
  }

  /** Answers calls until `stop` ends or `late` aborts. */
  async listen(stop: Readable, late: AbortSignal): Promise<void> {
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
      signal: AbortSignal.any([signal, late]),
    });
  }

  #take(name: string): void {
    if (this.#request.signal.aborted || !/^call-\w{10}$/.test(name)) return;
    const call = `${callsOf(this.#request.folder)}/${name}`;
    if (this.#limit.pendingCount < workForValidator.count.waitingCalls)
      this.#limit(() => this.#fulfill(call)).catch(this.#onFailure);
    else this.#onFailure(new CallsRefused('too many calls of offsite-run are waiting'));
  }

  async #fulfill(call: string): Promise<void> {
    using held = new DisposableStack();
    const hold = (size: number) => {
      this.#held += size;
      held.defer(() => {
        this.#held -= size;
      });
      const most = workForValidator.bytes.calls;
      if (this.#held > most) {
        throw new CallsRefused(`the calls of offsite-run in progress are larger than ${most / MiB} MiB`);
      }
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
    try {
      await container.put([...answer, { path: `${call}/code`, linkTarget: String(exitCode) }], '/', signal);
    } catch (error) {
      // The validator may have removed the folder meanwhile, so that nobody waits for this.
      if ((await container.kindOf(call, signal)) !== 'nothing') throw error;
    }
  }

  /**
   * The files of a call. Undefined if they are too large: the work may be the reason, so this is not a
   * failure of the engine. `gone` if the validator has removed the call's folder and so does not wait for an
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
      // Only the validator's own timeout ends it. An author who wants less uses the program `timeout`.
      const timeout = Number.MAX_SAFE_INTEGER;
      return await this.#work.run({ command, args, options: { cwd, timeout }, input });
    } catch (error) {
      if (error instanceof OffsiteError) throw error;
      return { exitCode: cannotRun, stdout: '', stderr: `offsite-run: ${messageOf(error)}\n` };
    }
  }
}

function callsOf(folder: string): string {
  return `${folder}/.calls`;
}
