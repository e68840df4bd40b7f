import { structuredPatch } from 'diff';

export interface DiffLine {
  kind: 'added' | 'removed' | 'same' | 'gap';
  /** For a gap, where it is. */
  text: string;
  /** Its number in the file before and after. */
  before?: number | undefined;
  after?: number | undefined;
  /** Where the part begins and ends that differs between a removed line and the added line in its place. */
  changed?: [start: number, end: number] | undefined;
}

export interface FileDiff {
  lines: DiffLine[];
  added: number;
  removed: number;
  /** Whether there was too little time, so that all old lines are removed and all new ones added. */
  isRough: boolean;
}

/** Milliseconds that the comparisons of a page may take together. */
const comparisonsMs = 6_000;
/** With less time than this, texts are not compared. */
const shortestMs = 1;
/** Characters of a line that is shown. */
const longestLine = 2_000;

/**
 * Compares texts for a page, one pair after the other, in small steps, so that the page stays responsive. A
 * comparison may take half of the time that is left, so that others have some too.
 */
export class Comparisons {
  #leftMs = comparisonsMs;
  #last: Promise<unknown> = Promise.resolve();

  /** The difference of two texts. Rejects with the signal's reason if it aborts before their turn. */
  diff(before: string, after: string, signal: AbortSignal): Promise<FileDiff> {
    const diff = this.#last.then(() => {
      signal.throwIfAborted();
      return this.#diff(before, after);
    });
    this.#last = diff.catch(() => undefined);
    return diff;
  }

  async #diff(before: string, after: string): Promise<FileDiff> {
    const begun = performance.now();
    const patch = this.#leftMs < shortestMs ? undefined : await patchOf(before, after, this.#leftMs / 2);
    this.#leftMs -= performance.now() - begun;
    const lines = patch ? patch.hunks.flatMap(linesOf) : roughly(before, after);
    markChanges(lines);
    const count = (kind: DiffLine['kind']) => lines.filter((each) => each.kind === kind).length;
    return { lines, added: count('added'), removed: count('removed'), isRough: !patch };
  }
}

/** Undefined if the comparison takes longer than `timeout` milliseconds. */
function patchOf(before: string, after: string, timeout: number) {
  return new Promise<ReturnType<typeof structuredPatch> | undefined>((resolve) => {
    structuredPatch('', '', before, after, '', '', { context: 3, timeout, callback: resolve });
  });
}

function linesOf(hunk: { oldStart: number; newStart: number; lines: string[] }): DiffLine[] {
  let before = hunk.oldStart;
  let after = hunk.newStart;
  const lines = hunk.lines.map((line): DiffLine => {
    const text = cut(line.slice(1));
    if (line.startsWith('+')) return { kind: 'added', text, after: after++ };
    if (line.startsWith('-')) return { kind: 'removed', text, before: before++ };
    if (line.startsWith('\\')) return { kind: 'gap', text };
    return { kind: 'same', text, before: before++, after: after++ };
  });
  return [{ kind: 'gap', text: `Lines from ${hunk.newStart}` }, ...lines];
}

function roughly(before: string, after: string): DiffLine[] {
  return [
    ...before
      .split('\n')
      .map((text, index): DiffLine => ({ kind: 'removed', text: cut(text), before: index + 1 })),
    ...after
      .split('\n')
      .map((text, index): DiffLine => ({ kind: 'added', text: cut(text), after: index + 1 })),
  ];
}

function cut(text: string): string {
  return text.length > longestLine ? `${text.slice(0, longestLine)}… (${text.length} characters)` : text;
}

/** Marks what changed within lines where as many lines are removed as are added in their place. */
function markChanges(lines: DiffLine[]): void {
  for (let start = 0; start < lines.length; start++) {
    if (lines[start]?.kind !== 'removed') continue;
    let middle = start;
    while (lines[middle]?.kind === 'removed') middle++;
    let end = middle;
    while (lines[end]?.kind === 'added') end++;
    if (middle - start === end - middle)
      for (let index = start; index < middle; index++) markPair(lines[index], lines[index + middle - start]);
    start = end - 1;
  }
}

function markPair(removed: DiffLine | undefined, added: DiffLine | undefined): void {
  if (!removed || !added) return;
  const [one, other] = [removed.text, added.text];
  const shorter = Math.min(one.length, other.length);
  let head = 0;
  while (head < shorter && one[head] === other[head]) head++;
  let tail = 0;
  while (tail < shorter - head && one.at(-1 - tail) === other.at(-1 - tail)) tail++;
  // Lines with little in common are other lines.
  if (head + tail < shorter / 3) return;
  removed.changed = [head, one.length - tail];
  added.changed = [head, other.length - tail];
}
