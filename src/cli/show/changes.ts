import { structuredPatch } from 'diff';
import type { FileChange, FileVersion } from '../../record/files.ts';
import { partPaths } from '../../record/tool-files.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import {
  ours,
  type Printable,
  present,
  quotedLine,
  type Style,
  stack,
  styled,
  text,
} from '../../text/printable.ts';
import { size } from '../../text/quantities.ts';
import { dim, firstOf, inFull, inStory, section } from './layout.ts';

/** Reads the text of a blob; undefined if the blob is gone. */
export type ReadText = (sha256: string) => string | undefined;

/** A changed file with its unified diff; `hunks` is empty if there is none to show, and `note` says why. */
export interface FileDiff {
  path: string;
  kind: FileChange['kind'];
  added: number;
  removed: number;
  hunks: Hunk[];
  note?: string;
}

interface Hunk {
  oldStart: number;
  oldLines: number;
  newStart: number;
  newLines: number;
  /** Each begins with `+`, `-`, ` ` or `\`. */
  lines: string[];
}

/**
 * Milliseconds that all comparisons of a document may take together. The time of a comparison grows with the
 * square of what differs.
 */
const comparisonsMs = 3_000;
/** Two texts of this size together take a few milliseconds whatever they contain, and have no time limit. */
const smallCharacters = 1_000;
/** With less time than this, a file is not compared. */
const shortestMs = 1;

/** The milliseconds that are left for the comparisons of a document. */
export interface ComparisonTime {
  leftMs: number;
}

export function comparisonTime(): ComparisonTime {
  return { leftMs: comparisonsMs };
}

/** Compares the versions of a file, in half of the time that is left, so that others have some too. */
export function diffOf(change: FileChange, read: ReadText, time: ComparisonTime): FileDiff {
  const { path, kind, before, after, omitted } = change;
  const plain = { path, kind, added: 0, removed: 0, hunks: [] };
  if (omitted !== undefined) return { ...plain, note: `${omissions[omitted]}${sizes(before, after)}` };
  // If only the mode changed, neither content is kept.
  const isSame = before?.type === 'file' && after?.type === 'file' && !before.content && !after.content;
  if (isSame) return { ...plain, note: modes(before, after) };
  const [old, now] = [before, after].map((version) => textOf(version, read));
  if (old === undefined || now === undefined)
    return { ...plain, note: `not kept as text${sizes(before, after)}` };
  const patch = patchOf(old, now, time);
  if (!patch)
    return { ...plain, note: `replaced; too different to be compared in time${sizes(before, after)}` };
  const lines = patch.hunks.flatMap((hunk) => hunk.lines);
  const count = (sign: string) => lines.filter((line) => line.startsWith(sign)).length;
  const mode = before && after && before.mode !== after.mode ? modes(before, after) : undefined;
  return {
    ...plain,
    added: count('+'),
    removed: count('-'),
    hunks: patch.hunks.map(asGit),
    ...(mode && { note: mode }),
  };
}

function patchOf(old: string, now: string, time: ComparisonTime) {
  const isSmall = old.length + now.length <= smallCharacters;
  if (!isSmall && time.leftMs < shortestMs) return undefined;
  const begun = performance.now();
  const limit = isSmall ? {} : { timeout: time.leftMs / 2 };
  const patch = structuredPatch('', '', old, now, undefined, undefined, { context: 3, ...limit });
  time.leftMs -= performance.now() - begun;
  return patch;
}

const omissions = {
  binary: 'binary file',
  large: 'too large to keep',
  room: 'not kept: too much changed',
} as const;

/**
 * The text of a version: for a link its target, for no version an empty text. Undefined if it was not kept.
 */
function textOf(version: FileVersion | undefined, read: ReadText): string | undefined {
  if (!version) return '';
  if (version.linkTarget !== undefined) return `${version.type} to ${version.linkTarget}\n`;
  if (version.type !== 'file') return `${version.type}\n`;
  if (version.content !== undefined) return read(version.content);
  return version.byteSize === 0 ? '' : undefined;
}

function sizes(before: FileVersion | undefined, after: FileVersion | undefined): string {
  const [old, now] = [before, after].map((one) =>
    one?.byteSize === undefined ? undefined : size(one.byteSize),
  );
  if (old === undefined || now === undefined || old === now) return (old ?? now) ? `, ${now ?? old}` : '';
  return `, ${old} → ${now}`;
}

function modes(before: FileVersion, after: FileVersion): string {
  const octal = ({ mode }: FileVersion) => (mode & 0o7777).toString(8).padStart(4, '0');
  return `mode ${octal(before)} → ${octal(after)}`;
}

/** How many lines of diffs and how many files a story shows. */
const inStoryMost = { lines: 40, files: 12 };

/**
 * What the agent changed.
 *
 * @param whole with all diffs in full
 */
export function changesSection(record: TrialRecord, read: ReadText, whole: boolean): Printable | undefined {
  const { changes, filesChanged = [] } = record;
  const count = record.filesChangedCount ?? filesChanged.length;
  if (count === 0 && !changes?.length) return undefined;
  const total = Math.max(count, changes?.length ?? 0);
  const most = whole ? Number.POSITIVE_INFINITY : inStoryMost.files;
  if (!changes) {
    const { own, rest } = shownOf(filesChanged, (path) => path, whole);
    return section('changed files', `${total}, their contents were not kept`, [
      ...firstOf(own, most, (path) => path),
      ...rest,
    ]);
  }
  const { own, rest } = shownOf(changes, ({ path }) => path, whole);
  const room = { lines: whole ? Number.POSITIVE_INFINITY : inStoryMost.lines };
  const time = comparisonTime();
  const body = firstOf(own, most, (change) => fileLines(diffOf(change, read, time), room, whole));
  return section('changed files', String(total), [...body, ...rest]);
}

/** The files to show, and a line that counts the rest, which says nothing about the work: .git and caches. */
function shownOf<File>(files: readonly File[], pathOf: (file: File) => string, whole: boolean) {
  if (whole) return { own: files, rest: [] };
  const { own, git, caches } = partPaths(files, pathOf);
  const counts = present([
    git.length > 0 && `${git.length} below .git`,
    caches.length > 0 && `${caches.length} in caches of tools`,
  ]);
  return { own, rest: counts.length > 0 ? [dim(`and ${counts.join(', ')}`)] : [] };
}

const signs = { added: 'A', modified: 'M', deleted: 'D' } as const;

function fileLines(
  { path, kind, added, removed, hunks, note }: FileDiff,
  room: { lines: number },
  whole: boolean,
): Printable {
  const counts = present([added > 0 && `+${added}`, removed > 0 && `−${removed}`, note !== '' && note]).join(
    ' ',
  );
  const head = text`${ours(signs[kind])} ${styled('bold', path)}  ${dim(counts)}`;
  const lines = hunks.flatMap((hunk) => [headOf(hunk), ...hunk.lines]);
  const shown = lines.slice(0, room.lines);
  room.lines -= shown.length;
  const spare = lines.length - shown.length;
  return stack([
    head,
    shown.length > 0 && text`  ${diffLines(shown, whole)}`,
    spare > 0 && dim(`  … ${spare} more lines of this diff`),
  ]);
}

/** Where a side has no lines, git names the line before. */
function asGit({ lines, oldStart, oldLines, newStart, newLines }: Hunk): Hunk {
  const [old, now] = [oldLines === 0 ? oldStart - 1 : oldStart, newLines === 0 ? newStart - 1 : newStart];
  return { oldStart: old, oldLines, newStart: now, newLines, lines };
}

function headOf({ oldStart, oldLines, newStart, newLines }: Hunk): string {
  return `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`;
}

const styles: Record<string, Style> = { '+': 'green', '-': 'red', '@': 'cyan', '\\': 'dim' };

/** Lines of a diff in git's colours, each behind a bar: a CI system could obey `+++ …`. */
function diffLines(lines: readonly string[], whole: boolean): Printable {
  const { characters } = whole ? inFull : inStory;
  return stack(lines.map((line) => quotedLine(line, characters, styles[line[0] ?? ''])));
}
