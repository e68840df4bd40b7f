import { useEffect, useMemo, useState } from 'preact/hooks';
import type { FileChange } from '../../../record/files.ts';
import { partPaths } from '../../../record/tool-files.ts';
import type { DataSource } from '../../model/data-source.ts';
import { useData } from '../data/source.tsx';
import { Comparisons, type DiffLine, type FileDiff } from '../parts/diff.ts';
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
  const { own, git, caches } = partPaths(changes, ({ path }) => path);
  return (
    <div class="scroll-pane">
      {own.map((change, index) => (
        <Change key={change.path} change={change} comparisons={comparisons} isOpen={index < openAtFirst} />
      ))}
      <MinorChanges title="below .git" changes={git} comparisons={comparisons} />
      <MinorChanges title="in caches of tools" changes={caches} comparisons={comparisons} />
    </div>
  );
}

/** A closed list of files that add nothing to what the other files show about the work. */
function MinorChanges({
  title,
  changes,
  comparisons,
}: {
  title: string;
  changes: FileChange[];
  comparisons: Comparisons;
}) {
  const [wasOpened, setOpened] = useState(false);
  if (changes.length === 0) return null;
  return (
    <details onToggle={(event) => event.currentTarget.open && setOpened(true)}>
      <summary>
        and {plural(changes.length, 'file')} {title}
      </summary>
      {wasOpened &&
        changes.map((change) => (
          <Change key={change.path} change={change} comparisons={comparisons} isOpen={false} />
        ))}
    </details>
  );
}

interface Compared {
  change: FileChange;
  comparisons: Comparisons;
}

function Change({ change, comparisons, isOpen }: Compared & { isOpen: boolean }) {
  const [wasOpened, setOpened] = useState(isOpen);
  const { path, kind, before, after, omitted } = change;
  return (
    <details class="file" open={isOpen} onToggle={(event) => event.currentTarget.open && setOpened(true)}>
      <summary>
        <span class={`tag ${kind}`}>{kind}</span> <span class="path">{line(path)}</span>
        <span class="dim">{modeChange(before?.mode, after?.mode)}</span>
      </summary>
      {omitted !== undefined ? (
        <p class="dim">{omissions[omitted]}</p>
      ) : (
        wasOpened && <Difference change={change} comparisons={comparisons} />
      )}
    </details>
  );
}

function modeChange(before: number | undefined, after: number | undefined): string {
  if (before === undefined || after === undefined || before === after) return '';
  return ` mode ${before.toString(8)} → ${after.toString(8)}`;
}

/** Lines of a difference that are shown at once. */
const linesAtOnce = 1_000;

function Difference({ change, comparisons }: Compared) {
  const { source } = useData();
  const [diff, setDiff] = useState<FileDiff>();
  const [failure, setFailure] = useState<string>();
  const [shown, setShown] = useState(linesAtOnce);
  useEffect(() => {
    const ended = new AbortController();
    load(source, change, comparisons, ended.signal).then(setDiff, (error: Error) => {
      if (!ended.signal.aborted) setFailure(error.message);
    });
    return () => ended.abort();
  }, [source, change, comparisons]);
  if (failure !== undefined) return <p class="dim">{failure}</p>;
  if (!diff) return <p class="dim">Comparing …</p>;
  if (diff.lines.length === 0) return <p class="dim">{unchanged(change)}</p>;
  return (
    <>
      <p class="dim counts">
        {plural(diff.added, 'line')} added, {diff.removed} removed
        {diff.isRough && '; too different to be compared in time'}
      </p>
      <div class="diff" role="region" aria-label={`Difference of ${line(change.path)}`} tabIndex={0}>
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

async function load(
  source: DataSource,
  { before, after }: FileChange,
  comparisons: Comparisons,
  signal: AbortSignal,
): Promise<FileDiff> {
  const text = async (sha256: string | undefined) => {
    if (sha256 === undefined) return '';
    const blob = await source.blob(sha256, signal);
    if (!blob) throw new Error('The content of the file is not available.');
    return blob.text();
  };
  return comparisons.diff(await text(before?.content), await text(after?.content), signal);
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
