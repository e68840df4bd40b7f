import { createHash } from 'node:crypto';
import { visibleAnswers } from '../bounds/sandbox.ts';
import type { Container } from '../engine/container.ts';
import type { Answer } from '../suite/case-tests.ts';
import { plural } from '../text/quantities.ts';
import { gitSettings } from '../validate/git-settings.ts';
import { TrialFailure } from './failure.ts';
import type { TrialSpec } from './spec.ts';

/** What an agent could find in its sandbox. */
export interface Visible {
  /** Files that grade or solve the case, each with where it is. */
  answers: { answer: Answer; at: string }[];
  /** Commits that are not in the history of HEAD, the latest first. */
  commits: { count: number; shown: string[]; repository: string } | undefined;
  /** Paths of bundles that have other commits than the history of HEAD. */
  bundles: string[];
  /** A program that the search needs and the image does not have. */
  missing: string | undefined;
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

/** Identifies what {@link searchVisible} looks for. */
export function searchKey({ answers, laterCommits, base }: Search): string {
  const all = [laterCommits, base, ...answers.map(({ sha256 }) => sha256)];
  return createHash('sha256').update(all.join(' ')).digest('hex');
}

/**
 * Looks in a started sandbox in which no harness has run: at the contents of files of the right sizes, and in
 * git repositories, also at what only their history has. One command. In an image without git, repositories
 * are not searched; the agent has no git there either.
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
      ...{ GIT_NO_LAZY_FETCH: '1', GIT_NO_REPLACE_OBJECTS: '1', GIT_OPTIONAL_LOCKS: '0', LC_ALL: 'C' },
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
      ...{ kind: 'infrastructure', phase: 'sandbox', output: result.stderr.text },
      message: `the sandbox could not be searched for the solution and the tests of its case: ${why.slice(0, 200)}`,
    });
  }
  return readFound(text, search.answers);
}

function readFound(text: string, answers: readonly Answer[]): Visible {
  const found = new Map<string, Visible['answers'][number]>();
  const shown: string[] = [];
  const visible: Visible = { answers: [], commits: undefined, bundles: [], missing: undefined };
  for (const line of text.split('\n')) {
    const [, kind, value = '', rest = ''] =
      /^(file|blob|commits|commit|bundle|missing) (\S*)(?: +(.*))?$/.exec(line) ?? [];
    const answer = answers.find(({ sha256, blobs }) => sha256 === value || blobs.includes(value));
    if (answer && kind === 'file') found.set(rest, { answer, at: rest });
    if (answer && kind === 'blob')
      found.set(`${rest} ${value}`, { answer, at: `git object ${value} of ${rest}` });
    if (kind === 'commit') shown.push(`${value.slice(0, 12)} ${rest.slice(0, 80)}`);
    if (kind === 'commits')
      visible.commits = { count: Number(value), shown: shown.splice(0), repository: rest };
    if (kind === 'bundle') visible.bundles.push(rest);
    if (kind === 'missing') visible.missing = value;
  }
  const inOrder = [...found.values()].toSorted(
    (one, other) => answers.indexOf(one.answer) - answers.indexOf(other.answer),
  );
  return { ...visible, answers: inOrder };
}

/** Folders of the system. A workspace in one of them is searched all the same. */
const systemFolders = 'proc sys dev usr lib lib64 bin sbin etc var run boot offsite'.split(' ');

/**
 * Prints `file HASH PATH`, `blob ID REPOSITORY`, `commit ID SUBJECT`, `commits COUNT REPOSITORY`, `bundle -
 * PATH` or `missing PROGRAM`, and at last `searched`. All numbers and hashes are ours, so nothing needs
 * quotes.
 */
function searchScript({ answers, laterCommits: findsLater }: Search): string {
  const sizes = [...new Set(answers.map(({ size }) => size))].map((size) => `-size ${size}c`).join(' -o ');
  const pruned = systemFolders.map((name) => `-path /${name}`).join(' -o ');
  return `
set -f
w=$1; base=$2
for program in find grep head sed sha256sum sort tr uniq wc; do
  command -v $program > /dev/null || { echo "missing $program"; echo searched; exit 0; }
done
# Runs find on the workspace, and then on everything else but the system.
everywhere() {
  find "$w" -xdev -path '*.git/objects' -prune -o "$@" 2> /dev/null < /dev/null
  find / -xdev \\( ${pruned} -o -path "$w" -o -path '*.git/objects' \\) -prune -o "$@" 2> /dev/null < /dev/null
}
${
  answers.length === 0
    ? ''
    : `everywhere -type f \\( ${sizes} \\) -exec sha256sum {} + | sed 's/^\\\\//' | grep -F -f /dev/fd/3 3<< 'END' | sed 's/^/file /'
${answers.map(({ sha256 }) => sha256).join('\n')}
END`
}
command -v git > /dev/null || { echo searched; exit 0; }
head=$(git -C "$w" rev-parse -q --verify HEAD 2> /dev/null)
after=$([ -n "$base" ] && git -C "$w" show -s --format=%ct "$base^{commit}" 2> /dev/null)
after=\${after:-0}
# A repository has a folder "objects" beside a file "HEAD".
find "$w" / -xdev \\( ${pruned} -o -path '*.git/objects/*' \\) -prune -o -type d -name objects -print 2> /dev/null < /dev/null | sort -u |
while IFS= read -r objects; do
  g=\${objects%/objects}
  [ -f "$g/HEAD" ] || continue
  git --git-dir="$g" cat-file --batch-check='%(objectname)' 2> /dev/null << 'END' | grep -v ' ' | while read -r id; do echo "blob $id $g"; done
${answers.flatMap(({ blobs }) => blobs).join('\n')}
END
${findsLater ? laterCommits : ''}
done
${findsLater ? laterBundles : ''}
echo searched
`;
}

/** Also those that no branch, tag or reflog names. Other repositories count if they have the same commit. */
const laterCommits = `
  [ -n "$head" ] && git --git-dir="$g" cat-file -e "$head" 2> /dev/null < /dev/null || continue
  later=$({ git --git-dir="$g" rev-list "$head"; git --git-dir="$g" cat-file --batch-all-objects --unordered \\
    --batch-check='%(objecttype) %(objectname)' | sed -n 's/^commit //p'; } 2> /dev/null < /dev/null | sort | uniq -u)
  [ -n "$later" ] || continue
  echo "$later" | git --git-dir="$g" log --stdin --not "$head" --format='%ct %H %s' 2> /dev/null | {
    n=0
    while read -r at id subject; do
      [ "$at" -ge "$after" ] || continue
      n=$((n + 1))
      [ $n -le ${visibleAnswers.count.shown} ] && echo "commit $id $subject"
    done
    [ $n -eq 0 ] || echo "commits $n $g"
  }`;

const laterBundles = `
[ -n "$head" ] && everywhere -type f -name '*.bundle' -print | while IFS= read -r bundle; do
  case "$(head -c 16 "$bundle" | tr -d '\\0')" in '# v2 git bundle'* | '# v3 git bundle'*) ;; *) continue ;; esac
  git -C "$w" bundle list-heads "$bundle" 2> /dev/null < /dev/null | while read -r id _; do
    git -C "$w" merge-base --is-ancestor "$id" "$head" 2> /dev/null < /dev/null && continue
    at=$(git -C "$w" show -s --format=%ct "$id^{commit}" 2> /dev/null < /dev/null)
    [ "\${at:-$after}" -lt "$after" ] || echo other
  done | grep -q other && echo "bundle - $bundle"
done`;

/** The commits that are not in the history of HEAD, and the bundles that have such ones. */
export function laterIn({ commits, bundles }: Pick<Visible, 'commits' | 'bundles'>): string[] {
  return [
    ...(commits
      ? [`${plural(commits.count, 'commit')} of ${commits.repository}: ${commits.shown.join('; ')}`]
      : []),
    ...bundles.map((path) => `the bundle ${path}`),
  ];
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
    ...{ kind: 'task', phase: 'sandbox', message: `${message}; ${hint}`, output, givesAway: true },
  });
}
