import { posix } from 'node:path';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { workForValidator } from '../../bounds/grading.ts';
import type { SourceFile } from '../../contract/definition.ts';
import { PathRoom } from '../../engine/changes/layer-paths.ts';
import type { Container } from '../../engine/container.ts';
import type { RunResult } from '../sandboxed/api.ts';
import type { SandboxedEndWork, SandboxedLook, SandboxedReply, SandboxedRun } from '../sandboxed/host.ts';
import type { Work, WorkSandbox } from './work.ts';

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

/**
 * Returns the text of a file in another sandbox. The engine reads it, so none of that sandbox's programs can
 * interfere.
 */
async function readApart(
  container: Container,
  workspace: string,
  path: string,
  signal: AbortSignal,
): Promise<string> {
  let at = posix.resolve(workspace, path);
  for (let links = 0; links <= workForValidator.count.links; links += 1) {
    const entry = await firstEntry(container, at, signal);
    if (entry.type === 'file') return entry.text;
    if (entry.linkTarget === undefined) throw new Error(`${path} is not a file`);
    at = posix.resolve(posix.dirname(at), entry.linkTarget);
  }
  throw new Error(`${path} leads through too many links`);
}

/**
 * Paths of everything except folders below the workspace of another sandbox, sorted. Links are listed but not
 * followed.
 */
async function filesApart(container: Container, workspace: string, signal: AbortSignal): Promise<string[]> {
  const paths: string[] = [];
  const room = new PathRoom();
  for await (const { path, type } of container.archive(workspace, signal)) {
    if (type === 'folder') continue;
    if (!room.take(path) || paths.length >= workForValidator.count.files) {
      throw new Error(`the workspace has more files than can be listed (${workForValidator.count.files})`);
    }
    paths.push(path);
  }
  return paths.sort();
}

async function firstEntry(container: Container, path: string, signal: AbortSignal) {
  try {
    for await (const { type, size, linkTarget, content } of container.archive(path, signal)) {
      if (type !== 'file') return { type, linkTarget, text: '' };
      if (size > workForValidator.bytes.file)
        throw new Error(`${path} has more than ${workForValidator.bytes.file} bytes`);
      return { type, linkTarget, text: Buffer.concat(await Array.fromAsync(content())).toString() };
    }
  } catch (error) {
    if (!(error instanceof OffsiteError) || error.code !== 'ENGINE_NOT_FOUND') throw error;
  }
  throw new Error(`ENOENT: no such file or directory, open '${path}'`);
}
