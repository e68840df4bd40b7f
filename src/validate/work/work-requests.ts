import type { SourceFile } from '../../contract/definition.ts';
import type { Container } from '../../engine/container.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { RunResult } from '../sandboxed/api.ts';
import type { SandboxedEndWork, SandboxedLook, SandboxedReply, SandboxedRun } from '../sandboxed/records.ts';
import type { Work } from './work.ts';
import { filesApart, readApart } from './work-files.ts';
import type { WorkSandbox } from './work-sandbox.ts';

interface WorkRequestsContext {
  folder: string;
  files: readonly SourceFile[];
  work: WorkSandbox;
  workspace: string;
  signal: AbortSignal;
}

/** Answers a validator's requests about the work. */
export class WorkRequests {
  readonly #request: WorkRequestsContext;
  readonly #work: Work;
  readonly #onFailure: (error: unknown) => void;

  constructor(request: WorkRequestsContext, work: Work, onFailure: (error: unknown) => void) {
    this.#request = request;
    this.#work = work;
    this.#onFailure = onFailure;
  }

  /**
   * Never rejects. A failure of the work becomes the reply. A failure of the engine also goes to `onFailure`.
   */
  async fulfill(asked: SandboxedRun | SandboxedLook | SandboxedEndWork): Promise<SandboxedReply> {
    const { id } = asked;
    try {
      return { id, value: await this.#answer(asked) };
    } catch (error) {
      if (error instanceof OffsiteError) this.#onFailure(error);
      return { id, error: messageOf(error) };
    }
  }

  async #run({ command, args, options }: SandboxedRun): Promise<RunResult> {
    await this.#show([command, ...args]);
    return this.#work.run({ command, args, options });
  }

  /**
   * Lets the work read and start those files of the validator that are named in its command line. All others
   * stay closed to it.
   */
  async #show(words: readonly string[]): Promise<void> {
    const { work, folder, files, signal } = this.#request;
    const named = files.filter(({ path }) => words.includes(`${folder}/${path}`));
    if (named.length === 0) return;
    await work.container.put(
      named.map(({ path, content }) => ({ path: `${folder}/${path}`, content, mode: 0o755 })),
      '/',
      signal,
    );
  }

  #answer(asked: SandboxedRun | SandboxedLook | SandboxedEndWork): Promise<unknown> {
    const { workspace, signal } = this.#request;
    const { container }: { container: Container } = this.#request.work;
    switch (asked.kind) {
      case 'run':
        return this.#run(asked);
      case 'read':
        return readApart(container, workspace, asked.path, signal);
      case 'files':
        return filesApart(container, workspace, signal);
      case 'end-work':
        return this.#work.end();
    }
  }
}
