import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { longestDocument, parseForeignJson } from '../../base/parse-json.ts';
import { engineAnswers } from '../../bounds/sandbox.ts';
import type { HostFacts } from '../port/containers.ts';
import { hostFactsFrom, type Placed } from './state.ts';

/** The folder that the engine keeps everything in, on its machine; undefined until it was asked. */
export interface OwnFolder {
  path: string | undefined;
}

/** What is used of the engine's file on a container. */
interface Kept extends Placed {
  Driver: string;
  MountPoints: Record<string, { RW: boolean }> | null;
}

/**
 * Where a running container is, as the engine's own files say, in which it keeps what it answers about the
 * container. They are written before its answer to a start. Undefined if this process cannot read them, as on
 * another machine, or if they are not as expected: then the engine must be asked. A container's id is random,
 * so its files are never those of another engine.
 */
export async function readHostFacts(folder: OwnFolder, id: string): Promise<HostFacts | undefined> {
  if (!folder.path) return undefined;
  try {
    const ofContainer = join(folder.path, 'containers', id);
    const [kept, host] = await Promise.all([
      documentAt<Kept>(join(ofContainer, 'config.v2.json')),
      documentAt<{ Runtime: string }>(join(ofContainer, 'hostconfig.json')),
    ]);
    const mounts = Object.values(kept.MountPoints ?? {});
    // The files do not say where the content of a volume is.
    if (!(kept.State.Pid > 0) || mounts.some(({ RW }) => RW !== false)) return undefined;
    const name = await readFile(
      join(folder.path, 'image', kept.Driver, 'layerdb/mounts', id, 'mount-id'),
      'utf8',
    );
    const layer = join(folder.path, kept.Driver, name, 'diff');
    if (name === '' || !(await stat(layer)).isDirectory()) return undefined;
    return hostFactsFrom({
      ...kept,
      GraphDriver: { Name: kept.Driver, Data: { UpperDir: layer } },
      HostConfig: host,
      Mounts: mounts,
    });
  } catch {
    return undefined;
  }
}

async function documentAt<T>(path: string): Promise<T> {
  const most = Math.min(engineAnswers.bytes.answer, longestDocument());
  if ((await stat(path)).size > most) throw new Error(`${path} is too long`);
  return parseForeignJson(await readFile(path, 'utf8')) as T;
}
