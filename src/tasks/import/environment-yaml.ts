import { posix } from 'node:path';
import type { CaseEnvironment, PlacedFile } from '../../suite/environment.ts';
import { servicesYaml } from './services-yaml.ts';
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
