import { useEffect, useMemo } from 'preact/hooks';
import type { Artifact } from '../../../contract/report.ts';
import { useLoaded } from '../data/source.tsx';
import { Fold } from '../parts/fold.tsx';
import { line } from '../parts/foreign.ts';
import { byteSize } from '../parts/quantities.ts';
import { TextBlock } from '../parts/text-block.tsx';
import { useRecord } from './record-context.tsx';

/** Files that the trial kept. */
export function Artifacts() {
  const { record } = useRecord();
  const { artifacts = [], artifactsOmitted = [], artifactsOmittedCount } = record;
  if (artifacts.length + artifactsOmitted.length === 0) return <p class="notice">No file was kept.</p>;
  return (
    <div class="scroll-pane">
      {artifacts.map((artifact) => (
        <Fold
          key={artifact.path}
          class="file"
          summary={
            <>
              <span class="path">{line(artifact.path)}</span>{' '}
              <span class="dim">{byteSize(artifact.byteSize)}</span>
            </>
          }
        >
          {() => <Content {...artifact} />}
        </Fold>
      ))}
      {artifactsOmitted.length > 0 && (
        <>
          <h2>Not kept: {artifactsOmittedCount ?? artifactsOmitted.length} files over the limits</h2>
          <ul class="paths">
            {artifactsOmitted.map((path) => (
              <li key={path}>{line(path)}</li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

/** Bytes of a content that is shown. A larger one can be saved. */
const mostShown = 16 * 1024 ** 2;

function Content({ path, byteSize: size, sha256 }: Artifact) {
  const { value: content, error } = useLoaded(sha256, async (source, signal) =>
    shownAs(await source.blob(sha256, signal)),
  );
  const url = useMemo(() => content && URL.createObjectURL(content.file), [content]);
  useEffect(() => () => url && URL.revokeObjectURL(url), [url]);
  if (!content) return <p class="dim">{error?.message ?? 'Loading …'}</p>;
  return (
    <>
      <p>
        <a class="button" href={url} download={path.split('/').at(-1) ?? 'artifact'}>
          Save
        </a>{' '}
        <span class="id">sha256 {sha256}</span>
      </p>
      {content.isPicture && <img src={url} alt={line(path)} />}
      {content.text !== undefined && <TextBlock text={content.text} label={line(path)} />}
      {!content.isPicture && content.text === undefined && (
        <p class="dim">{size > mostShown ? 'It is too large for a page.' : 'It is not text.'}</p>
      )}
    </>
  );
}

interface Shown {
  /** With the type of a picture, or one that no browser shows. */
  file: Blob;
  isPicture?: boolean;
  text?: string;
}

/** How a content is shown. Its first bytes decide, because a file's name can be misleading. */
async function shownAs(blob: Blob): Promise<Shown> {
  const head = new Uint8Array(await blob.slice(0, 16).arrayBuffer());
  const type = pictures.find(({ fits }) => fits(String.fromCharCode(...head)))?.type;
  const file = new Blob([blob], { type: type ?? 'application/octet-stream' });
  if (type !== undefined) return { file, isPicture: true };
  if (blob.size > mostShown) return { file };
  try {
    return { file, text: new TextDecoder('utf-8', { fatal: true }).decode(await blob.arrayBuffer()) };
  } catch {
    return { file };
  }
}

/** Types of pictures that cannot contain scripts. */
const pictures = [
  { type: 'image/png', fits: (head: string) => head.startsWith('\x89PNG') },
  { type: 'image/jpeg', fits: (head: string) => head.startsWith('\xff\xd8\xff') },
  { type: 'image/gif', fits: (head: string) => head.startsWith('GIF8') },
  { type: 'image/webp', fits: (head: string) => head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP' },
];
