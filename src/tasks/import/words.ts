import { posix, relative, sep } from 'node:path';
import type { CaseEnvironment } from '../../suite/environment.ts';
import type { Healthcheck, PlacedFile, PlannedBuild } from '../../suite/environment-parts.ts';

/** A part of a case that a suite file cannot express. */
export class NotCarried extends Error {}

/** Where the files of a case are written. Each resolves to a path that is relative to the suite. */
export interface Writing {
  /** Files into a folder of the case. */
  put(name: string, entries: PlacedFile[]): string;
  /** A folder of the host, copied whole into a folder of the case. */
  copy(from: string, to: string): string;
}

/** Writes into a folder of the case's folder. */
export function writingIn(folder: string, { put, copy }: Writing): Writing {
  return {
    put: (name, entries) => put(posix.join(folder, name), entries),
    copy: (from, to) => copy(from, posix.join(folder, to)),
  };
}

/** A text in a file of its own, as a suite names it. */
export function fileYaml(path: string, text: string, { put }: Writing): { file: string } {
  const entry = { path: posix.basename(path), content: Buffer.from(text), mode: 0o644 };
  return { file: posix.join(put(posix.dirname(path), [entry]), entry.path) };
}

export function buildYaml(build: PlannedBuild, to: string, { copy }: Writing): Record<string, unknown> {
  const { context, file, target, args } = build;
  return {
    context: copy(context.folder, to),
    dockerfile: insideOf(context.folder, file),
    ...(target !== undefined && { target }),
    ...(Object.keys(args).length > 0 && { args }),
  };
}

/** The way from a folder to a file in it. */
function insideOf(folder: string, file: string): string {
  const way = relative(folder, file);
  if (way.startsWith('..')) throw new NotCarried(`its Dockerfile ${file} is outside of its context`);
  return posix.normalize(way.split(sep).join('/'));
}

/** Throws {@link NotCarried} for a key that has a value and that is not written. */
export function refuseOthers(value: object, known: readonly string[], where: string): void {
  const other = Object.entries(value).find(([key, each]) => saysSomething(each) && !known.includes(key));
  if (other) throw new NotCarried(`import does not write ${where}${other[0]}; run it with --tasks`);
}

/** Whether a value has any content, at some depth. */
function saysSomething(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value !== undefined && value !== null;
  return Object.values(value).some(saysSomething);
}

/** Without keys that have no value. */
export function given(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
}

export function nonEmpty<Value extends object>(value: Value): Value | undefined {
  return Object.keys(value).length === 0 ? undefined : value;
}

export function nonEmptyList<Each>(list: readonly Each[]): readonly Each[] | undefined {
  return list.length === 0 ? undefined : list;
}

/** @param ms whole milliseconds */
export function duration(ms: number): string {
  if (ms % 60_000 === 0 && ms > 0) return `${ms / 60_000}m`;
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}

/** The healthcheck of a sandbox or a service, as YAML. */
export function healthcheckYaml(
  check: Omit<Healthcheck, 'command'> & { command: string | string[] },
): Record<string, unknown> {
  const { interval, timeout, startPeriod } = check;
  const times = {
    interval: duration(interval),
    timeout: duration(timeout),
    startPeriod: duration(startPeriod),
  };
  return { ...check, ...times };
}

export function resourcesYaml({ cpus, memory, disk }: CaseEnvironment['resources']): Record<string, unknown> {
  const size = (bytes: number | undefined) =>
    bytes !== undefined && bytes % 1024 ** 2 === 0 ? `${bytes / 1024 ** 2}m` : bytes;
  return given({ cpus, memory: size(memory), disk: size(disk) });
}
