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

/** What a service mounts, without the folders for logs, which Offsite has in its own way. */
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
  const files = [...mounted, ...inMemory, ...readConfigs(source, name, table)];
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
  // The task's whole folder has its tests and its solution.
  if (source?.startsWith('~') || !isBelow(folder.path, from) || isBelow(from, folder.path)) {
    remarks.uses('bind-mount', at);
    return undefined;
  }
  if (folder.kind(from.slice(folder.path.length + 1)) === undefined)
    throw new BadFile([{ ...at, message: `there is no ${from}` }]);
  remarks.uses('service-file', at);
  return { kind: 'file', from, to: target, readOnly };
}

function readConfigs(
  { document, remarks, folder, project, compose }: ComposeSource,
  name: string,
  { configs }: ServiceTable,
): ServiceFile[] {
  return configs.flatMap((use, index): ServiceFile[] => {
    const { source, target } = typeof use === 'string' ? { source: use, target: undefined } : use;
    const at = (message: string) => document.issue(['services', name, 'configs', index], message);
    const config = compose.configs?.[source];
    if (!config) throw new BadFile([at(`there is no config ${source}`)]);
    const to = target ?? `/${source}`;
    if (config.content !== undefined) return [{ kind: 'content', content: config.content, to }];
    const from = config.file === undefined ? undefined : resolve(project, config.file);
    if (from !== undefined && isBelow(folder.path, from)) {
      if (!folder.isFile(from.slice(folder.path.length + 1)))
        throw new BadFile([at(`there is no file ${from}`)]);
      return [{ kind: 'file', from, to, readOnly: true }];
    }
    remarks.uses('outside-path', at(source));
    return [];
  });
}
