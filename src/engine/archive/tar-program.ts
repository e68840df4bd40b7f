import { posix } from 'node:path';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { remembered, startDeadline } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { archives } from '../../bounds/sandbox.ts';
import { ignoreRemovalFailure, removeContainer } from '../container/remove.ts';
import { ownershipLabels } from '../owned-objects.ts';
import { otherPlainRuntime, type UsedEngine } from '../port/engine-port.ts';
import { connectionFailure, engineFailure } from '../port/failure.ts';

/**
 * GNU tar, which knows holes: an engine reads each as zeros, and writes zeros as blocks. It runs from
 * Offsite's own image in a container of its own, which shares the process namespace of the container whose
 * files it reads or writes. So no program of that container takes part, and links there lead to nothing of
 * the machine.
 */
export interface TarProgram {
  /** An archive of an absolute path, with the names of an engine's. Dispose it. */
  read(path: string, signal: AbortSignal | undefined): Promise<TarArchive>;
  /** Unpacks an archive whose names are relative to the root. */
  write(archive: AsyncIterable<Buffer>, signal: AbortSignal | undefined): Promise<void>;
}

export interface TarArchive extends AsyncDisposable {
  /** The standard output of the program, and its input. */
  archive: Duplex;
  /** Waits for the end of the program. Throws what it said if it could not read or write everything. */
  complete(): Promise<void>;
}

/** The program beside a running container; undefined if the engine cannot run it there. */
export type FindTar = (id: string) => Promise<TarProgram | undefined>;

const image = 'offsite/base';
const root = '/proc/1/root';

export function tarPrograms(parts: UsedEngine): FindTar {
  const { port, capabilities } = parts;
  // A container with a user namespace of its own lets no other one look at its processes.
  const cannot = capabilities.security.userns;
  const once = remembered<string | undefined>();
  return async (id) => {
    if (cannot) return undefined;
    const imageId = await once(image, async () => (await port.images.find(image))?.id);
    return imageId === undefined ? undefined : programIn(parts, { id, imageId });
  };
}

/** `delete`: without records of times, most entries need none at all. */
const reading =
  '--create --format=posix --pax-option=delete=atime,delete=ctime,delete=mtime --sparse --numeric-owner --file=-';
const writing = '--extract --preserve-permissions --same-owner --numeric-owner --file=-';

/** To look at the files of another process, and to read any of them. */
const readers = ['SYS_PTRACE', 'DAC_OVERRIDE'];
/** Also to give them to any user. */
const writers = [...readers, 'CHOWN', 'FOWNER'];

function programIn(parts: UsedEngine, where: { id: string; imageId: string }): TarProgram {
  return {
    read(path, signal) {
      const folder = `--directory=${root}${posix.dirname(path)}`;
      const argv = [...reading.split(' '), folder, '--', `./${posix.basename(path)}`];
      return start(parts, where, { argv, capabilities: readers, signal });
    },
    async write(archive, signal) {
      const argv = [...writing.split(' '), `--directory=${root}`];
      await using program = await start(parts, where, { argv, capabilities: writers, signal });
      const stdio = program.archive;
      using deadline = startDeadline(parts.port.clock, archives.time.transfer, signal);
      stdio.resume();
      const ended = new Promise((resolve) => stdio.once('close', resolve));
      try {
        await pipeline(archive, stdio, { signal: deadline.signal });
      } catch (error) {
        deadline.signal.throwIfAborted();
        if (error instanceof OffsiteError) throw error;
        // If the program has ended too early, this throws what it said.
        await program.complete();
        throw connectionFailure('copying files with holes', error);
      }
      await ended;
      await program.complete();
    },
  };
}

async function start(
  { port, instance, capabilities }: UsedEngine,
  { id, imageId }: { id: string; imageId: string },
  {
    argv,
    signal,
    ...more
  }: { argv: string[]; capabilities: readonly string[]; signal: AbortSignal | undefined },
): Promise<TarArchive> {
  const { containers, clock } = port;
  const labels = ownershipLabels({ instance, role: 'container', createdAt: clock.now() });
  const program = await containers.create(
    {
      imageId,
      labels,
      ...more,
      processesOf: id,
      network: 'none',
      user: '0:0',
      command: ['tar', ...argv],
      env: { LC_ALL: 'C' },
      stdin: true,
      readOnlyRoot: true,
      memoryBytes: archives.bytes.tarMemory,
      pids: 4,
      runtime: otherPlainRuntime(capabilities),
    },
    signal,
  );
  const remove = () => removeContainer(port, program.id).catch(ignoreRemovalFailure);
  let said = '';
  const onStderr = (bytes: Buffer) => {
    said = `${said}${bytes}`.slice(-archives.bytes.tarWords);
  };
  try {
    const archive = await containers.attach(program.id, { onStderr, waitsForReader: true, signal });
    await containers.start(program.id, signal);
    return {
      archive,
      async [Symbol.asyncDispose]() {
        archive.destroy();
        await remove();
      },
      async complete() {
        archive.resume();
        using deadline = startDeadline(clock, archives.time.transfer, signal);
        for (;;) {
          const { isRunning, exitCode } = await containers.state(program.id, deadline.signal);
          if (!isRunning && exitCode === 0) return;
          if (!isRunning)
            throw engineFailure('refused', `Files with holes cannot be copied: ${said.trim()}`, undefined);
          await clock.sleep(20, deadline.signal);
        }
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
