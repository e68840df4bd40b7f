import { dirname, join } from 'node:path';
import { type CaseEnvironment, EnvironmentSource, type PlacedFile } from '../suite/environment.ts';
import type { FileIssue } from '../suite/file-issues.ts';
import { type EnvironmentParts, plannedEnvironment } from '../suite/load-environment.ts';
import { schemaProblems } from '../suite/schema-problems.ts';
import { mountedFiles, serviceSources, withMounts } from './case-services.ts';
import type { Task, TaskEnvironment } from './task.ts';
import { issueAt } from './task-folder.ts';

/** Folders that Harbor makes for agents, tests and artifacts. Any user may write to them. */
const logFolders = ['/logs/agent', '/logs/verifier', '/logs/artifacts'];

/**
 * The environment of a case that is a task, or of its tests. What is wrong with it is reported.
 *
 * @param of the task's own, or that of its verifier, with its key in `task.toml`
 */
export function caseEnvironment(
  task: Task,
  parts: Omit<EnvironmentParts, 'folder'>,
  report: (issue: FileIssue) => void,
  of: { environment: TaskEnvironment; key: string } = { environment: task.environment, key: 'environment' },
): CaseEnvironment {
  const { source, ...environment } = of.environment;
  const definition = join(task.place, 'task.toml');
  const { workdir, user, env } = environment;
  const checked = EnvironmentSource.safeParse({ workdir, user, env });
  if (!checked.success)
    for (const { path, message } of schemaProblems(checked.error))
      report(issueAt(definition, `${of.key}.${path.join('.')}: ${message}`));
  const { cpus, memoryBytes: memory, diskBytes: disk, healthcheck, startUp } = environment;
  const mounted = placedOf(environment);
  const hosts = environment.main?.hosts ?? {};
  const planned = plannedEnvironment(
    {
      ...(source.kind === 'image' && { image: source.image }),
      ...(source.kind === 'build' && { build: source }),
      workdir,
      user,
      env,
      resources: { cpus, memory, disk },
      ...(healthcheck && { healthcheck }),
      files: mounted.files,
      folders: mounted.folders,
      services: serviceSources(environment.services, (issue) => report(issueAt(definition, issue))),
    },
    {
      ...parts,
      // So that the names of builds begin with the name of the task.
      folder: dirname(task.place),
      placeOf: (key, name) =>
        (key === 'services' && environment.services.find((one) => one.name === name)?.place) ||
        (source.kind === 'build' ? source.dockerfile : definition),
      report: (_key, issue) => report(typeof issue === 'string' ? issueAt(definition, issue) : issue),
    },
  );
  const logs = logFolders.map((path) => ({ path, folder: true as const, mode: 0o777 }));
  return {
    ...planned,
    ...(planned.services && {
      services: withMounts(planned.services, environment.services),
      nameForServices: environment.main?.name,
    }),
    files: [...(planned.files ?? []), ...mounted.contents, ...logs],
    ...(mounted.volumes.length > 0 && { volumes: mounted.volumes }),
    ...(startUp && { startUp }),
    ...(Object.keys(hosts).length > 0 && { hosts }),
    timeouts: { build: environment.buildTimeoutMs, harness: task.agent.timeoutMs },
  };
}

/** What is put into the main container: files beside an image, and what its compose file mounts. */
export function placedOf({ files: inWorkdir, main }: Pick<TaskEnvironment, 'files' | 'main'>) {
  const mounted = main?.files ?? [];
  const { files, folders } = mountedFiles(mounted);
  return {
    files,
    folders: { ...(inWorkdir !== undefined && { '.': inWorkdir }), ...folders },
    contents: mounted.flatMap((file): PlacedFile[] => {
      if (file.kind === 'content')
        return [{ path: file.to, content: Buffer.from(file.content), mode: 0o644 }];
      return file.kind === 'memory' ? [{ path: file.to, folder: true, mode: 0o1777 }] : [];
    }),
    volumes: mounted.flatMap((file) => (file.kind === 'volume' ? [file.to] : [])),
  };
}
