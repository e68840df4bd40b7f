import { posix, relative, sep } from 'node:path';
import type { PlacedFile, PlannedBuild } from '../../suite/environment.ts';

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

export function buildYaml({ context, file, target, args }: PlannedBuild, to: string, { copy }: Writing) {
  return { context: copy(context.folder, to), dockerfile: insideOf(context.folder, file), target, args };
}

/** The way from a folder to a file in it. */
function insideOf(folder: string, file: string): string {
  const way = relative(folder, file);
  if (way.startsWith('..')) throw new NotCarried(`its Dockerfile ${file} is outside of its context`);
  return posix.normalize(way.split(sep).join('/'));
}

/** Keys whose numbers are milliseconds. */
const times = new Set(['timeout', 'interval', 'startPeriod', 'build', 'harness']);

/** Keys whose numbers are bytes. */
const sizes = new Set(['memory', 'disk']);

/** Keys of lists that say something when they are empty: no host, no argument. */
const emptyLists = new Set(['hosts', 'command', 'entrypoint', 'args', 'sealed', 'failToPass']);

/** Maps that do: the image's own program, an agent that gets nothing of its case's. */
const emptyMaps = new Set(['startUp', 'agent']);

/** A value as a suite file has it: times and sizes with their units, and no keys that say nothing. */
export function asWritten(value: unknown, key = ''): unknown {
  // Rewards have any names.
  if (key === 'threshold') return value;
  if (typeof value === 'number' && times.has(key)) return duration(value);
  if (typeof value === 'number' && sizes.has(key))
    return value % 1024 ** 2 === 0 ? `${value / 1024 ** 2}m` : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => asWritten(each));
  const members = Object.entries(value).map(([name, each]) => [name, asWritten(each, name)] as const);
  return Object.fromEntries(members.filter(([name, each]) => !saysNothing(name, each)));
}

function saysNothing(key: string, value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0 && !emptyLists.has(key);
  if (typeof value === 'object' && value !== null)
    return Object.keys(value).length === 0 && !emptyMaps.has(key);
  return value === undefined;
}

/** @param ms whole milliseconds */
function duration(ms: number): string {
  if (ms % 60_000 === 0 && ms > 0) return `${ms / 60_000}m`;
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}
