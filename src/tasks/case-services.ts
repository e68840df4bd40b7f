import { statSync } from 'node:fs';
import type { PlacedFile } from '../suite/environment.ts';
import { schemaProblems } from '../suite/schema-problems.ts';
import {
  type PlannedService,
  type ServiceHealthcheck,
  type ServiceSource,
  Services,
} from '../suite/services.ts';
import type { ContainerSource, ServiceFile, TaskService } from './task.ts';

/** The services of a task as a suite would name them. What is wrong with them is reported. */
export function serviceSources(
  services: readonly TaskService[],
  report: (issue: string) => void,
): Record<string, ServiceSource> | undefined {
  if (services.length === 0) return undefined;
  const given = Object.fromEntries(services.map((service) => [service.name, givenOf(service)]));
  const checked = Services.safeParse(given);
  if (checked.success) return checked.data;
  for (const { path, message } of schemaProblems(checked.error))
    report(`services.${path.join('.')}: ${message}`);
  return undefined;
}

function buildOf({ kind: _, ...build }: ContainerSource & { kind: 'build' }) {
  return build;
}

function givenOf({ source, env, hosts, files, workdir, user, ...service }: TaskService) {
  const { command, entrypoint, aliases, healthcheck, dependsOn, cpus, memoryBytes: memory } = service;
  return {
    ...(source.kind === 'image' && { image: source.image }),
    ...(source.kind === 'build' && { build: buildOf(source) }),
    command,
    entrypoint,
    aliases,
    env,
    workdir,
    user,
    ...(Object.keys(hosts).length > 0 && { hosts }),
    ...(healthcheck && { healthcheck: healthcheck === 'none' ? false : healthcheckOf(healthcheck) }),
    dependsOn: Object.fromEntries(dependsOn.map(({ service: name, until }) => [name, until])),
    ...mountedFiles(files),
    resources: { cpus, memory },
    memoryFolders: files.flatMap((file) => (file.kind === 'memory' ? [file.to] : [])),
  };
}

/** The files and folders of a task that a container mounts, by their paths there. */
export function mountedFiles(files: readonly ServiceFile[]) {
  const mounted = files.filter((file) => file.kind === 'file');
  const targets = (wanted: boolean) =>
    Object.fromEntries(
      mounted.filter(({ from }) => statSync(from).isDirectory() === wanted).map(({ from, to }) => [to, from]),
    );
  return { files: targets(false), folders: targets(true) };
}

function healthcheckOf({ command, retries, ...times }: ServiceHealthcheck) {
  const { interval, timeout, startPeriod } = times;
  const duration = (ms: number) => `${Math.max(1, Math.round(ms))}ms`;
  return {
    command,
    interval: duration(interval),
    timeout: duration(timeout),
    startPeriod: duration(startPeriod),
    retries: Math.max(1, retries),
  };
}

/** Adds what a suite has no keys for: contents in the compose file itself, and volumes. */
export function withMounts(
  planned: readonly PlannedService[],
  services: readonly TaskService[],
): PlannedService[] {
  return planned.map((one) => {
    const { files = [] } = services.find(({ name }) => name === one.name) ?? {};
    const contents = files.flatMap((file): PlacedFile[] =>
      file.kind === 'content' ? [{ path: file.to, content: Buffer.from(file.content), mode: 0o644 }] : [],
    );
    const volumes = files.flatMap((file) => (file.kind === 'volume' ? [file.to] : []));
    return {
      ...one,
      ...(contents.length > 0 && { files: [...(one.files ?? []), ...contents] }),
      ...(volumes.length > 0 && { volumes }),
    };
  });
}
