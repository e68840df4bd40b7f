import { randomBytes } from 'node:crypto';
import { remembered } from '../../base/deadline.ts';
import { inputError, type OffsiteError } from '../../base/offsite-error.ts';
import { putEntries } from '../archive/write-archive.ts';
import { runQuietly } from '../exec/run-quietly.ts';
import { ownershipLabels } from '../owned-objects.ts';
import { plainRuntimes, type UsedEngine } from '../port/engine-port.ts';
import { isEngineFailure } from '../port/failure.ts';
import { requestOf } from './container-request.ts';
import type { ContainerSpec } from './container-spec.ts';
import { removeContainer } from './remove.ts';
import type { RunningContainer } from './running-container.ts';

/** What the containers of a runtime have. */
export interface RuntimeFacts {
  /**
   * Whether the engine's list of a container's processes is true. A runtime with a kernel of its own gives
   * the engine the ids of that kernel, and the engine then shows the processes of its machine that have the
   * same ids.
   */
  listsProcesses: boolean;
  /** Whether it protects the paths that a request names as read-only. */
  protectsPaths: boolean;
}

/** Finds the facts about a container's runtime; see {@link runtimeProbe}. */
export type ProbeRuntime = (spec: ContainerSpec) => Promise<RuntimeFacts>;

const plain: RuntimeFacts = { listsProcesses: true, protectsPaths: true };

/**
 * Tests each runtime once, in a separate container in which nothing else runs, so that no agent can falsify
 * the result. Plain runtimes are known and cost nothing; others cost about ten round trips. Throws
 * `ENGINE_CANNOT_ENFORCE`, an `input` error, if the engine does not see the files of the runtime's
 * containers, or containers do not see what the engine writes.
 */
export function runtimeProbe(parts: UsedEngine): ProbeRuntime {
  const once = remembered<RuntimeFacts>();
  return async (spec) => {
    const name = spec.runtime ?? parts.capabilities.defaultRuntime;
    // Offsite's own programs and services are never listed, and their images may have no shell.
    const isKnown = plainRuntimes.includes(name) || spec.program !== undefined || spec.service !== undefined;
    return isKnown ? plain : once(name, () => probe(parts, name, spec));
  };
}

async function probe(
  { port, instance, capabilities }: UsedEngine,
  name: string,
  { imageId, runtime }: ContainerSpec,
): Promise<RuntimeFacts> {
  const { containers, clock } = port;
  const spec: ContainerSpec = {
    imageId,
    runtime,
    network: 'none',
    security: 'compatible',
    user: '0:0',
    workingDir: '/',
    memoryBytes: 256 * 2 ** 20,
    cpus: Math.min(1, capabilities.cpus),
    pids: 256,
  };
  const labels = ownershipLabels({ instance, role: 'container', createdAt: clock.now() });
  const { id } = await containers.create({
    ...requestOf(spec, capabilities, { ...plain, init: ['/bin/sh', '-c', 'exec sleep infinity'] }),
    labels,
  });
  try {
    await containers.start(id);
    const [{ initPid }, listed] = await Promise.all([containers.state(id), containers.processes(id, 'comm')]);
    const inside = { port, id, user: '0:0' };
    await requireSharedFiles(inside, name);
    return {
      listsProcesses: listed?.some(({ pid }) => pid === initPid) ?? false,
      protectsPaths: (await runQuietly(inside, '(: > /dev/offsite-probe) || echo refused')) !== '',
    };
  } finally {
    await removeContainer(port, id);
  }
}

/**
 * Both ways: the container writes a file that the engine reads, then looks for one that the engine writes.
 */
async function requireSharedFiles(
  inside: Pick<RunningContainer, 'port' | 'id' | 'user'>,
  name: string,
): Promise<void> {
  const [written, put] = [0, 1].map(() => `offsite-${randomBytes(8).toString('hex')}`);
  // Looks for the second file before that exists, because a kernel may remember that there is none.
  await runQuietly(inside, `test -e /${put}; : > /${written}`);
  try {
    await inside.port.containers.isFolder(inside.id, `/${written}`);
  } catch (error) {
    if (isEngineFailure(error, 'not-found')) throw ownFiles(name, error);
    throw error;
  }
  await putEntries(inside, [{ path: `${put}`, content: '' }], '/');
  if ((await runQuietly(inside, `test -e /${put} && echo seen`)) !== 'seen\n') throw ownFiles(name);
}

function ownFiles(name: string, cause?: unknown): OffsiteError {
  const message = `The runtime ${name} keeps the files of its containers where the engine does not see them`;
  return inputError('ENGINE_CANNOT_ENFORCE', message, {
    hint: 'gVisor needs --overlay2=none and --file-access=shared: add them to its runtimeArgs in daemon.json.',
    cause,
  });
}
