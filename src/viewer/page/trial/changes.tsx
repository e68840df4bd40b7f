import { useMemo, useState } from 'preact/hooks';
import type { FileChange } from '../../../record/files.ts';
import { partPaths } from '../../../record/tool-files.ts';
import { useLoaded } from '../data/source.tsx';
import { Comparisons, type DiffLine } from '../parts/diff.ts';
import { Fold } from '../parts/fold.tsx';
import { line } from '../parts/foreign.ts';
import { plural } from '../parts/quantities.ts';
import { useRecord } from './record-context.tsx';

/** Files whose differences are open at first. */
const openAtFirst = 5;

const omissions: Record<NonNullable<FileChange['omitted']>, string> = {
  binary: 'It is not text, so its content was not kept.',
  large: 'It is too large: its content was not kept.',
  room: 'The contents kept for this trial had no room for it.',
};

/** What the agent did to the files of the workspace. */
export function Changes() {
  const { record } = useRecord();
  const { changes, filesChanged = [], filesChangedCount } = record;
  const comparisons = useMemo(() => new Comparisons(), [record]);
  if (!changes) {
    if (filesChanged.length === 0) return <p class="notice">No file changed.</p>;
    const more = (filesChangedCount ?? 0) - filesChanged.length;
    return (
      <div class="scroll-pane">
        <p class="dim">The contents of these files were not kept.</p>
        <ul class="paths">
          {filesChanged.map((path) => (
            <li key={path}>{line(path)}</li>
          ))}
        </ul>
        {more > 0 && <p class="dim">and {more} more</p>}
      </div>
    );
  }
  if (changes.length === 0) return <p class="notice">No file changed.</p>;
  const { own, git, caches } = partPaths(
    changes.map((change) => ({ change, comparisons })),
    ({ change }) => change.path,
  );
  return (
    <div class="scroll-pane">
      {own.map((one, index) => (
        <Change key={one.change.path} {...one} isOpen={index < openAtFirst} />
      ))}
      <MinorChanges title="below .git" all={git} />
      <MinorChanges title="in caches of tools" all={caches} />
    </div>
  );
}

interface Compared {
  change: FileChange;
  comparisons: Comparisons;
}

/** A closed list of files that add nothing to what the other files show about the work. */
function MinorChanges({ title, all }: { title: string; all: Compared[] }) {
  if (all.length === 0) return null;
  return (
    <Fold summary={`and ${plural(all.length, 'file')} ${title}`}>
      {() => all.map((one) => <Change key={one.change.path} {...one} isOpen={false} />)}
    </Fold>
  );
}

function Change({ change, comparisons, isOpen }: Compared & { isOpen: boolean }) {
  const { path, kind, before, after, omitted } = change;
  const summary = (
    <>
      <span class={`tag ${kind}`}>{kind}</span> <span class="path">{line(path)}</span>
      <span class="dim">{modeChange(before?.mode, after?.mode)}</span>
    </>
  );
  return (
    <Fold class="file" isOpen={isOpen} summary={summary}>
      {() =>
        omitted === undefined ? (
          <Difference change={change} comparisons={comparisons} />
        ) : (
          <p class="dim">{omissions[omitted]}</p>
        )
      }
    </Fold>
  );
}

function modeChange(before: number | undefined, after: number | undefined): string {
  if (before === undefined || after === undefined || before === after) return '';
  return ` mode ${before.toString(8)} → ${after.toString(8)}`;
}

/** Lines of a difference that are shown at once. */
const linesAtOnce = 1_000;

function Difference({ change, comparisons }: Compared) {
  const [shown, setShown] = useState(linesAtOnce);
  const { before, after, path } = change;
  const { value: diff, error } = useLoaded(`${before?.content} ${after?.content}`, async (source, signal) => {
    const text = async (sha256: string | undefined) =>
      sha256 === undefined ? '' : (await source.blob(sha256, signal)).text();
    return comparisons.diff(await text(before?.content), await text(after?.content), signal);
  });
  if (!diff) return <p class="dim">{error?.message ?? 'Comparing …'}</p>;
  if (diff.lines.length === 0) return <p class="dim">{unchanged(change)}</p>;
  return (
    <>
      <p class="dim counts">
        {plural(diff.added, 'line')} added, {diff.removed} removed
        {diff.isRough && '; too different to be compared in time'}
      </p>
      <div class="diff" role="region" aria-label={`Difference of ${line(path)}`} tabIndex={0}>
        {diff.lines.slice(0, shown).map((each, index) => (
          <Line key={index} {...each} />
        ))}
      </div>
      {diff.lines.length > shown && (
        <button type="button" onClick={() => setShown(shown * 10)}>
          Show more of {diff.lines.length} lines
        </button>
      )}
    </>
  );
}

function unchanged({ before, after }: FileChange): string {
  const target = after?.linkTarget ?? before?.linkTarget;
  if (target !== undefined) return `A link to ${line(target)}.`;
  if ((after ?? before)?.type === 'folder') return 'A folder.';
  return 'No line of its content changed.';
}

const signs: Record<DiffLine['kind'], string> = { added: '+', removed: '-', same: ' ', gap: '' };

function Line({ kind, text, before, after, changed }: DiffLine) {
  if (kind === 'gap') return <div class="line gap">{text}</div>;
  const [start, end] = changed ?? [0, 0];
  return (
    <div class={`line ${kind}`}>
      <span class="place">{before}</span>
      <span class="place">{after}</span>
      <span class="sign">
        {signs[kind]}
        {kind !== 'same' && <span class="unseen">{kind}: </span>}
      </span>
      <code>
        {changed ? (
          <>
            {line(text.slice(0, start))}
            <mark>{line(text.slice(start, end))}</mark>
            {line(text.slice(end))}
          </>
        ) : (
          line(text)
        )}
      </code>
    </div>
  );
}
