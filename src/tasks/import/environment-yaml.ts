import { posix } from 'node:path';
import type { CaseEnvironment } from '../../suite/environment.ts';
import type { PlacedFile } from '../../suite/environment-parts.ts';
import type { PlannedService } from '../../suite/services.ts';
import { buildYaml, NotCarried, type Writing } from './words.ts';

/** An environment as a suite file says it, before {@link asWritten}. Throws {@link NotCarried}. */
export function environmentYaml(environment: CaseEnvironment, writing: Writing): Record<string, unknown> {
  const { image, build, services = [], nameForServices, files = [], ...rest } = environment;
  const isWritable = (file: PlacedFile) =>
    'folder' in file && file.mode === 0o777 && posix.isAbsolute(file.path);
  const inWorkspace = files.filter((file) => !isWritable(file));
  const outside = inWorkspace.find(({ path }) => posix.isAbsolute(path));
  if (outside) throw new NotCarried(`its environment puts a file at ${outside.path}`);
  return {
    image: image?.name,
    build: build && buildYaml(build, 'environment', writing),
    services: Object.fromEntries(services.map((service) => [service.name, serviceYaml(service, writing)])),
    ...(services.length > 0 && { nameForServices }),
    ...rest,
    ...(inWorkspace.length > 0 && { folders: { '.': writing.put('files', inWorkspace) } }),
    writable: files.filter(isWritable).map(({ path }) => path),
  };
}

function serviceYaml(service: PlannedService, writing: Writing): Record<string, unknown> {
  const { name, place: _, image, build, healthcheck, dependsOn, files = [], ...rest } = service;
  const below = posix.join('services', name.replaceAll(/[^\w.-]/g, '_'));
  return {
    image: image?.name,
    build: build && buildYaml(build, posix.join(below, 'context'), writing),
    ...rest,
    healthcheck: healthcheck === 'none' ? false : healthcheck,
    dependsOn: Object.fromEntries(dependsOn.map((one) => [one.service, one.until])),
    ...placedYaml(files, posix.join(below, 'files'), writing),
  };
}

/** Files one by one, and folders with all that is in them. */
function placedYaml(placed: readonly PlacedFile[], below: string, { put }: Writing) {
  // A later file replaces an earlier one.
  const files = [...new Map(placed.map((file) => [file.path, file])).values()];
  const folders = files.filter((file) => 'folder' in file).map(({ path }) => path);
  const tops = folders.filter((path) => !folders.some((other) => path.startsWith(`${other}/`)));
  const left = new Set(files.filter(({ path }) => !tops.includes(path)));
  const named: Record<string, string> = {};
  for (const top of tops) {
    const inside = [...left].filter(({ path }) => path.startsWith(`${top}/`));
    for (const file of inside) left.delete(file);
    const entries = inside.map((file) => ({ ...file, path: file.path.slice(top.length + 1) }));
    named[top] = put(posix.join(below, top), entries);
  }
  const single: Record<string, string> = {};
  for (const file of left) {
    if (!('content' in file)) throw new NotCarried(`a service gets a link at ${file.path}`);
    const folder = put(posix.join(below, posix.dirname(file.path)), [
      { ...file, path: posix.basename(file.path) },
    ]);
    single[file.path] = posix.join(folder, posix.basename(file.path));
  }
  return { files: single, folders: named };
}
