import { posix, relative, sep } from 'node:path';
import type { PlacedFile, PlannedBuild } from '../../suite/environment-parts.ts';

/** Something of a case that a suite file cannot say. */
export class NotCarried extends Error {}

/** Where the files of a case are written. Each resolves to a path that is relative to the suite. */
export interface Writing {
  /** Files into a folder of the case. */
  put(name: string, entries: PlacedFile[]): string;
  /** A folder of the host, copied whole into a folder of the case. */
  copy(from: string, to: string): string;
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

/** Without keys that have no value. */
export function given(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
}

export function nonEmpty<Value extends object>(value: Value): Value | undefined {
  return Object.keys(value).length === 0 ? undefined : value;
}

export function nonEmptyList<Each>(list: Each[]): Each[] | undefined {
  return list.length === 0 ? undefined : list;
}

/** @param ms whole milliseconds */
export function duration(ms: number): string {
  if (ms % 60_000 === 0 && ms > 0) return `${ms / 60_000}m`;
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}
