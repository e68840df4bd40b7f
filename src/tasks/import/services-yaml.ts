import { posix } from 'node:path';
import type { PlacedFile } from '../../suite/environment-parts.ts';
import type { PlannedService } from '../../suite/services.ts';
import {
  buildYaml,
  given,
  healthcheckYaml,
  NotCarried,
  nonEmpty,
  nonEmptyList,
  resourcesYaml,
  type Writing,
} from './words.ts';

/** The services of a case as a suite file says them. Throws {@link NotCarried}. */
export function servicesYaml(services: readonly PlannedService[], writing: Writing): Record<string, unknown> {
  return Object.fromEntries(services.map((service) => [service.name, given(serviceYaml(service, writing))]));
}

function serviceYaml(service: PlannedService, writing: Writing): Record<string, unknown> {
  const { name, image, build, healthcheck, dependsOn, files = [], resources, ...rest } = service;
  const { aliases, entrypoint, command, env, workdir, user, memoryFolders, volumes = [], hosts = {} } = rest;
  const below = posix.join('services', name.replaceAll(/[^\w.-]/g, '_'));
  return {
    image: image?.name,
    build: build && buildYaml(build, posix.join(below, 'context'), writing),
    ...{ entrypoint, command, env: nonEmpty(env), hosts: nonEmpty(hosts), workdir, user },
    aliases: nonEmptyList(aliases),
    healthcheck: healthcheck === 'none' ? false : healthcheck && healthcheckYaml(healthcheck),
    dependsOn: nonEmpty(Object.fromEntries(dependsOn.map((one) => [one.service, one.until]))),
    ...placedYaml(files, posix.join(below, 'files'), writing),
    memoryFolders: nonEmptyList(memoryFolders),
    volumes: nonEmptyList(volumes),
    resources: nonEmpty(resourcesYaml(resources)),
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
  return { files: nonEmpty(single), folders: nonEmpty(named) };
}
