import type { Readable } from 'node:stream';
import { type Extract, extract, type Header } from 'tar-stream';
import { OffsiteError } from '../../offsite-error.ts';
import type { RunningContainer } from '../container/running-container.ts';
import { startDeadline } from '../deadline.ts';
import { engineFailure } from '../failure.ts';
import type { ArchivedEntry, ArchivedType } from './entries.ts';
import { TRANSFER_TIMEOUT_MS } from './transfer-timeout.ts';

const TYPES: Readonly<Record<string, ArchivedType>> = {
  file: 'file',
  'contiguous-file': 'file',
  directory: 'folder',
  symlink: 'symlink',
  link: 'hardlink',
  'character-device': 'device',
  'block-device': 'device',
  fifo: 'fifo',
};

/**
 * Reads a file, or a folder with all below it, entry by entry while it arrives. Stopping early (`break`) ends the transfer;
 * the engine holds the container for as long as it lasts, so do not stop in between.
 * Throws `ENGINE_NOT_FOUND` when the path does not exist. A path that is itself a symlink gives that link only.
 */
export async function* readArchive(
  { client, id }: RunningContainer,
  path: string,
  signal?: AbortSignal,
): AsyncGenerator<ArchivedEntry> {
  const doing = `reading ${path} from a container`;
  const source = (await client.call(
    doing,
    (abortSignal) => client.docker.getContainer(id).getArchive({ path, abortSignal }),
    { signal },
  )) as Readable;
  using deadline = startDeadline(client.clock, TRANSFER_TIMEOUT_MS, signal);
  const unpacked = unpack(source, deadline.signal);
  const broken = (thrown: unknown) => (signal?.aborted ? signal.reason : engineFailure(doing, thrown));
  // Not by `for await`: tar-stream would wait for the whole archive when it is left early.
  const entries = unpacked[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { value: entry, done } = await entries.next();
      if (done) return;
      yield { ...described(entry.header), content: () => contentOf(entry, broken) };
      // What was not read stands before the next entry.
      entry.resume();
    }
  } catch (thrown) {
    throw broken(thrown);
  } finally {
    source.destroy();
    unpacked.destroy();
  }
}

function unpack(source: Readable, deadline: AbortSignal): Extract {
  const unpacked = extract();
  deadline.addEventListener('abort', () => source.destroy(deadline.reason), { once: true });
  source.on('error', (error) => unpacked.destroy(error));
  source.on('close', () => {
    // A connection that is cut has no 'end'; tar-stream would wait for it for ever.
    if (!source.readableEnded) unpacked.destroy(new Error('the connection was cut'));
  });
  // Its iterator reports errors; without a listener they would be thrown into the air as well.
  unpacked.on('error', () => undefined);
  source.pipe(unpacked as unknown as NodeJS.WritableStream);
  return unpacked;
}

async function* contentOf(
  entry: AsyncIterable<unknown>,
  broken: (thrown: unknown) => unknown,
): AsyncGenerator<Buffer> {
  try {
    yield* entry as AsyncIterable<Buffer>;
  } catch (thrown) {
    throw broken(thrown);
  }
}

function described(header: Header): Omit<ArchivedEntry, 'content'> {
  const type = TYPES[header.type ?? 'file'] ?? 'device';
  return {
    path: innerPath(header.name),
    type,
    size: type === 'file' ? (header.size ?? 0) : 0,
    mode: header.mode ?? 0,
    modifiedAt: header.mtime?.getTime() ?? 0,
    linkTarget: linkTarget(header, type),
  };
}

/** A hard link names another entry of the archive, so its target is shortened like one. */
function linkTarget({ linkname }: Header, type: ArchivedType): string | undefined {
  if (type === 'symlink') return linkname;
  return type === 'hardlink' ? innerPath(linkname) : undefined;
}

/** The engine names everything after the last part of the path that was asked for; that part is cut off here. */
function innerPath(name: string): string {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) {
    throw new OffsiteError(
      `The engine sent a file name that leads out of its folder: ${JSON.stringify(name)}`,
      {
        code: 'ENGINE_UNSAFE_PATH',
        kind: 'infrastructure',
      },
    );
  }
  return parts.slice(1).join('/');
}
