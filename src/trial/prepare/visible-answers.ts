import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { visibleAnswers } from '../../bounds/sandbox.ts';
import type { Container } from '../../engine/container.ts';
import { hasPart, tellingLines } from '../../suite/answer-lines.ts';
import type { Answer } from '../../suite/case-tests.ts';
import { plural } from '../../text/quantities.ts';
import { gitSettings } from '../../validate/workspace-copy.ts';
import { TrialFailure } from '../blame.ts';
import type { TrialSpec } from '../spec.ts';

const script = readFileSync(new URL('./visible-answers.sh', import.meta.url), 'utf8');

/** What an agent could find in its sandbox. */
export interface Visible {
  /** Files that grade or solve the case, each with where it is. */
  answers: { answer: Answer; at: string }[];
  /** Commits that are not in the history of HEAD, the latest first. */
  commits: { count: number; shown: string[]; repository: string } | undefined;
  /** Paths of bundles that have other commits than the history of HEAD. */
  bundles: string[];
  /** Files that hold others, and could not be searched, and files too many to compare. */
  unread: string[];
  /** Files with the lines of what may be input and expected output at the same time. */
  doubtful: { answer: Answer; at: string }[];
  /** What could not be searched for want of a program, and which: ` in archives: the image has no od`. */
  missing: string[];
}

/** What is looked for. */
export interface Search {
  answers: readonly Answer[];
  /** Whether commits that are not in the history of HEAD are looked for. */
  laterCommits: boolean;
  /** The commit that a row of SWE-bench is about, or ''. What other branches had before it is no solution. */
  base: string;
}

/** Undefined if there is nothing to look for. */
export function searchOf(
  spec: Pick<TrialSpec, 'answers' | 'hidesLaterCommits' | 'tests'>,
): Search | undefined {
  const { answers = [], hidesLaterCommits: laterCommits = false, tests } = spec;
  if (answers.length === 0 && !laterCommits) return undefined;
  const { brought } = tests?.fresh ?? {};
  return { answers, laterCommits, base: brought?.kind === 'workspace' ? brought.base : '' };
}

/** Identifies what {@link searchVisible} looks for, how, and where. */
export function searchKey(search: Search, where: readonly string[]): string {
  const all = JSON.stringify([...where, search.base, searchScript(search)]);
  return createHash('sha256').update(all).digest('hex');
}

/** What a search finds that finds nothing, and could look at everything. */
export const nothingVisible: Visible = {
  answers: [],
  commits: undefined,
  bundles: [],
  unread: [],
  doubtful: [],
  missing: [],
};

export function isNothing({ commits, ...lists }: Visible): boolean {
  return commits === undefined && Object.values(lists).every((list) => list.length === 0);
}

/**
 * Looks in a started sandbox in which no harness has run: at the contents of files of the right sizes, and in
 * git repositories, also at what only their history has; all that inside archives, too. One command. In an
 * image without git, repositories are not searched; the agent has no git there either.
 */
export async function searchVisible(
  container: Container,
  search: Search,
  signal: AbortSignal,
): Promise<Visible> {
  const result = await container.exec({
    argv: ['/bin/sh', '-s', container.workingDir, search.base],
    stdin: searchScript(search),
    env: {
      ...gitSettings({ 'safe.directory': '*', 'core.fsmonitor': 'false', 'core.hooksPath': '/dev/null' }),
      GIT_NO_LAZY_FETCH: '1',
      GIT_NO_REPLACE_OBJECTS: '1',
      GIT_OPTIONAL_LOCKS: '0',
      LC_ALL: 'C',
    },
    capBytes: visibleAnswers.bytes.output,
    timeoutMs: visibleAnswers.time.search,
    signal,
  });
  signal.throwIfAborted();
  const { text } = result.stdout;
  if (result.ended !== 'exited' || !text.endsWith('searched\n')) {
    const why = result.ended === 'not-started' ? result.message : result.stderr.text.trim() || result.ended;
    throw new TrialFailure({
      kind: 'infrastructure',
      phase: 'sandbox',
      output: result.stderr.text,
      message: `the sandbox could not be searched for the solution and the tests of its case: ${why.slice(0, 200)}`,
    });
  }
  return readFound(text, search.answers);
}

function readFound(text: string, answers: readonly Answer[]): Visible {
  const found = new Map<string, Visible['answers'][number]>();
  const shown: string[] = [];
  const archives = new Map<string, string>();
  // Archives are unpacked into folders that are gone now.
  const placeOf = (path: string): string => {
    const [folder, archive] = [...archives].find(([each]) => path.startsWith(`${each}/`)) ?? [];
    return folder === undefined ? path : `${path.slice(folder.length + 1)} in ${placeOf(archive ?? '')}`;
  };
  const visible: Visible = { ...nothingVisible, bundles: [], unread: [], missing: [] };
  const doubtful = new Map<string, Visible['doubtful'][number]>();
  const compared = /^text - ([^\n]*)\n((?:\| [^\n]*\n)*)/gm;
  for (const line of text.replaceAll(compared, '').split('\n')) {
    const [, kind, value = '', path = ''] =
      /^(file|blob|commits|commit|bundle|unpacked|unread|missing) (\S*)(?: +(.*))?$/.exec(line) ?? [];
    const answer = answers.find(({ sha256, blobs }) => sha256 === value || blobs.includes(value));
    const place = placeOf(path);
    if (answer && kind === 'file') found.set(place, { answer, at: place });
    if (answer && kind === 'blob')
      found.set(`${place} ${value}`, { answer, at: `git object ${value} of ${place}` });
    if (kind === 'commit') shown.push(`${value.slice(0, 12)} ${path.slice(0, 80)}`);
    if (kind === 'commits')
      visible.commits = { count: Number(value), shown: shown.splice(0), repository: place };
    if (kind === 'bundle') visible.bundles.push(place);
    if (kind === 'unpacked') archives.set(value, path);
    if (kind === 'unread') visible.unread.push(place);
    if (kind === 'missing') visible.missing.push(`${path && ` in ${path}`}: the image has no ${value}`);
  }
  for (const [, path = '', lines = ''] of text.matchAll(compared)) {
    const at = placeOf(path);
    for (const { answer, isDoubtful } of answersWithin(path, lines.replaceAll(/^\| /gm, ''), answers))
      if (!found.has(at)) (isDoubtful ? doubtful : found).set(at, { answer, at });
  }
  const inOrder = [...found.values()].toSorted(
    (one, other) => answers.indexOf(one.answer) - answers.indexOf(other.answer),
  );
  return { ...visible, answers: inOrder, doubtful: [...doubtful.values()] };
}

/** Whose lines a file has. */
function* answersWithin(path: string, content: string, answers: readonly Answer[]) {
  const lines = once((of: Parameters<typeof tellingLines>[1]) => tellingLines(content, of));
  for (const answer of answers)
    for (const part of answer.parts ?? [])
      if (content.includes(part.key) && part.except !== basename(path) && hasPart(lines(part.of), part))
        yield { answer, isDoubtful: part.doubtful === true };
}

function once<Key, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new Map<Key, Value>();
  return (key) => {
    const value = made.get(key) ?? make(key);
    made.set(key, value);
    return value;
  };
}

/** Those of the case itself come first. One argument of a program takes 128 KiB. */
function keysOf(answers: readonly Answer[]): string[] {
  const keys = answers.flatMap(({ parts = [] }) => parts.map(({ key }) => key));
  return [...new Set(keys)].filter((key) => key !== 'END').slice(0, visibleAnswers.count.lines);
}

/** What `visible-answers.sh` reads, and the script. Nothing is expanded in what it quotes. */
function searchScript({ answers, laterCommits }: Search): string {
  const sizes = [...new Set(answers.map(({ size }) => size))].map((size) => `-size ${size}c`).join(' -o ');
  return `
sizes='${sizes}' most_text=${visibleAnswers.bytes.text} most_texts=${visibleAnswers.count.texts}
export keys=$(cat << 'END'
${keysOf(answers).join('\n')}
END
)
known() { grep -F -f /dev/fd/3 3<< 'END'
${answers.map(({ sha256 }) => sha256).join('\n')}
END
}
ids() { cat << 'END'
${answers.flatMap(({ blobs }) => blobs).join('\n')}
END
}
later=${laterCommits ? 'yes' : ''}
most_bytes=${visibleAnswers.bytes.archive} most_archives=${visibleAnswers.count.archives}
most_seconds=${visibleAnswers.time.archives / 1000} most_shown=${visibleAnswers.count.shown}
${script}`;
}

/** The commits that are not in the history of HEAD, and the bundles that have such ones. */
export function laterIn({ commits, bundles }: Pick<Visible, 'commits' | 'bundles'>): string[] {
  return [
    ...(commits
      ? [`${plural(commits.count, 'commit')} of ${commits.repository}: ${commits.shown.join('; ')}`]
      : []),
    ...bundles.map((path) => `the bundle ${path}`),
  ];
}

/** How a result names a search that was not whole. */
export const wholeSearch = 'a search for the solution and the tests of its case';

/** What the search could not look at, and what it could not decide. */
export function searchLacks({ unread: [first, ...more], missing, doubtful }: Visible): string[] {
  const unpacked = `${first}${more.length > 0 ? ` and ${plural(more.length, 'more file')}` : ''}`;
  return [
    ...missing,
    ...(first === undefined ? [] : [` in ${unpacked}, which cannot be searched there`]),
    ...doubtful.map(
      ({ answer, at }) => ` that knows input from answers: ${at} has the lines of ${answer.name}`,
    ),
  ].map((lack) => `${wholeSearch}${lack}`);
}

/** Throws a {@link TrialFailure} of kind `task` if an agent could find what it must not. */
export function refuseVisible(visible: Visible): void {
  const { answers } = visible;
  const [first, ...more] = answers;
  const later = laterIn(visible);
  if (!first && later.length === 0) return;
  const message = first
    ? `an agent could read ${first.answer.name} at ${first.at}${more.length > 0 ? `, and ${plural(more.length, 'more file')} that grade or solve the case` : ''}`
    : `an agent could read commits that are not in the history of HEAD: ${later.join('; ')}`;
  const output = [...answers.map(({ answer, at }) => `${answer.name}: ${at}`), ...later].join('\n');
  const hint = first
    ? 'leave it out: with .dockerignore, leaveOut of the source, or in prepare; what agents need belongs into files of the environment'
    : 'leave them out of the image';
  throw new TrialFailure({
    kind: 'task',
    phase: 'sandbox',
    message: `${message}; ${hint}`,
    output,
    givesAway: true,
  });
}
