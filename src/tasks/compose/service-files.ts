import { resolve } from 'node:path';
import { BadFile } from '../../suite/file-issues.ts';
import type { ServiceFile } from '../task.ts';
import { isBelow } from '../task-folder.ts';
import type { ServiceTable } from './compose-file.ts';
import { hostLogs } from './interpolate.ts';
import type { ComposeSource } from './source.ts';

interface Mount {
  type: 'bind' | 'volume' | 'tmpfs';
  source: string | undefined;
  target: string;
  readOnly: boolean;
}

/** What a service mounts, without the folders for logs, which Offsite makes itself. */
export function readServiceFiles(source: ComposeSource, name: string, table: ServiceTable): ServiceFile[] {
  const mounted = table.volumes.flatMap((volume, index): ServiceFile[] => {
    const path = ['services', name, 'volumes', index];
    const file = readMount(source, mountOf(volume), path);
    return file ? [file] : [];
  });
  const inMemory = [table.tmpfs ?? []].flat().map((mount): ServiceFile => {
    // After a colon there are settings of the mount.
    const [to = ''] = mount.split(':');
    return { kind: 'memory', to };
  });
  const shared = table.shm_size === undefined ? [] : [{ kind: 'memory' as const, to: '/dev/shm' }];
  const contents = (['configs', 'secrets'] as const).flatMap((kind) =>
    readContents(source, name, table, kind),
  );
  const files = [...mounted, ...inMemory, ...shared, ...contents];
  const wrong = files.find(({ to }) => !isTarget(to));
  if (!wrong) return files;
  const message = `mounts at ${JSON.stringify(wrong.to)}, which is no absolute path below /`;
  throw new BadFile([source.document.issue(['services', name], message)]);
}

function isTarget(path: string): boolean {
  return /^\/+[^/]/.test(path) && !path.split('/').some((part) => part === '..' || part === '.');
}

function mountOf(volume: ServiceTable['volumes'][number]): Mount {
  if (typeof volume !== 'string') {
    const { type, source, target, read_only } = volume;
    return { type, source, target, readOnly: read_only === true };
  }
  const isLogs = volume.startsWith(`${hostLogs}:`);
  const [, before = '', rest = volume] =
    (isLogs ? /^([^:]+:[^:]+):(.*)$/ : /^([^:]+):(.*)$/).exec(volume) ?? [];
  const [target = '', mode = ''] = rest.split(':');
  const source = before === '' ? undefined : before;
  const type = isLogs || /^[./~]/.test(before) ? 'bind' : 'volume';
  return { type, source, target, readOnly: mode.split(',').includes('ro') };
}

function readMount(
  { document, remarks, folder, project }: ComposeSource,
  { type, source, target, readOnly }: Mount,
  path: (string | number)[],
): ServiceFile | undefined {
  if (source === hostLogs) return undefined;
  const at = document.issue(path, source === undefined ? target : `${source} at ${target}`);
  if (type === 'tmpfs') return { kind: 'memory', to: target };
  if (type === 'volume') return { kind: 'volume', volume: source ?? '', to: target, readOnly };
  const from = resolve(project, source ?? '');
  // A mount of the task's whole folder would show its tests and its solution.
  if (source?.startsWith('~') || !isBelow(folder.path, from) || isBelow(from, folder.path)) {
    remarks.uses('bind-mount', at);
    return undefined;
  }
  if (folder.kind(from.slice(folder.path.length + 1)) === undefined)
    throw new BadFile([{ ...at, message: `there is no ${from}` }]);
  remarks.uses('service-file', at);
  return { kind: 'file', from, to: target, readOnly };
}

function readContents(
  { document, remarks, folder, project, compose }: ComposeSource,
  name: string,
  table: ServiceTable,
  kind: 'configs' | 'secrets',
): ServiceFile[] {
  const what = kind === 'configs' ? 'config' : 'secret';
  return table[kind].flatMap((use, index): ServiceFile[] => {
    const { source, target } = typeof use === 'string' ? { source: use, target: undefined } : use;
    const at = (message: string) => document.issue(['services', name, kind, index], message);
    const given = compose[kind]?.[source];
    if (!given) throw new BadFile([at(`there is no ${what} ${source}`)]);
    const to = targetOf(kind, target ?? source);
    if (given.content !== undefined) return [{ kind: 'content', content: given.content, to }];
    const from = given.file === undefined ? undefined : resolve(project, given.file);
    if (from !== undefined && isBelow(folder.path, from)) {
      if (!folder.isFile(from.slice(folder.path.length + 1)))
        throw new BadFile([at(`there is no file ${from}`)]);
      return [{ kind: 'file', from, to, readOnly: true }];
    }
    remarks.uses('outside-path', at(source));
    return [];
  });
}

/** A relative target is in the folder of its kind. */
function targetOf(kind: 'configs' | 'secrets', target: string): string {
  if (target.startsWith('/')) return target;
  return kind === 'configs' ? `/${target}` : `/run/secrets/${target}`;
}
