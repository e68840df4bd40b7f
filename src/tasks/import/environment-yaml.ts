import { posix } from 'node:path';
import type { CaseEnvironment } from '../../suite/environment.ts';
import type { PlacedFile } from '../../suite/environment-parts.ts';
import type { PlannedService } from '../../suite/services.ts';
import {
  buildYaml,
  duration,
  given,
  healthcheckYaml,
  NotCarried,
  nonEmpty,
  nonEmptyList,
  refuseOthers,
  resourcesYaml,
  type Writing,
} from './words.ts';

/** An environment as a suite file says it. Throws {@link NotCarried}. */
export function environmentYaml(environment: CaseEnvironment, writing: Writing): Record<string, unknown> {
  const { image, build, workdir, user, env, resources, healthcheck, files = [], timeouts = {} } = environment;
  const { services = [], nameForServices, startUp, hosts = {} } = environment;
  const known = ['image', 'build', 'workdir', 'user', 'env', 'resources', 'healthcheck', 'files', 'timeouts'];
  refuseOthers(environment, [...known, 'services', 'nameForServices', 'startUp', 'hosts'], 'environment.');
  const isWritable = (file: PlacedFile) =>
    'folder' in file && file.mode === 0o777 && posix.isAbsolute(file.path);
  const inWorkspace = files.filter((file) => !isWritable(file));
  const outside = inWorkspace.find(({ path }) => posix.isAbsolute(path));
  if (outside) throw new NotCarried(`its environment puts a file at ${outside.path}`);
  return given({
    image: image?.name,
    build: build && buildYaml(build, 'environment', writing),
    services: nonEmpty(servicesYaml(services, writing)),
    ...(services.length > 0 && { nameForServices }),
    hosts: nonEmpty(hosts),
    startUp: startUp && given({ ...startUp }),
    workdir,
    user,
    env: nonEmpty(env),
    folders: inWorkspace.length > 0 ? { '.': writing.put('files', inWorkspace) } : undefined,
    writable: nonEmptyList(files.filter(isWritable).map(({ path }) => path)),
    healthcheck: healthcheck && healthcheckYaml(healthcheck),
    resources: nonEmpty(resourcesYaml(resources)),
    timeouts: nonEmpty(
      given({
        build: timeouts.build === undefined ? undefined : duration(timeouts.build),
        harness: timeouts.harness === undefined ? undefined : duration(timeouts.harness),
      }),
    ),
  });
}

/** The services of a case as a suite file says them. Throws {@link NotCarried}. */
function servicesYaml(services: readonly PlannedService[], writing: Writing): Record<string, unknown> {
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
