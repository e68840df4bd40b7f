import { useEffect, useState } from 'preact/hooks';
import type { Artifact } from '../../../contract/report.ts';
import { useData } from '../data/source.tsx';
import { LongText } from '../parts/blob-text.tsx';
import { line } from '../parts/foreign.ts';
import { byteSize } from '../parts/quantities.ts';
import { useRecord } from './record-context.tsx';

/** Files that the trial kept. */
export function Artifacts() {
  const { record } = useRecord();
  const { artifacts = [], artifactsOmitted = [], artifactsOmittedCount } = record;
  if (artifacts.length + artifactsOmitted.length === 0) return <p class="notice">No file was kept.</p>;
  return (
    <div class="scroll-pane">
      {artifacts.map((artifact) => (
        <ArtifactView key={artifact.path} artifact={artifact} />
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

function ArtifactView({ artifact: { path, byteSize: size, sha256 } }: { artifact: Artifact }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="file" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="path">{line(path)}</span> <span class="dim">{byteSize(size)}</span>
      </summary>
      {isOpen && <Content {...{ path, size, sha256 }} />}
    </details>
  );
}

function Content({ path, size, sha256 }: { path: string; size: number; sha256: string }) {
  const { source } = useData();
  const [content, setContent] = useState<Shown>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    const ended = new AbortController();
    let url: string | undefined;
    const load = async () => {
      const blob = await source.blob(sha256, ended.signal);
      if (!blob) return setFailure('Its content is not available.');
      const found = await shownAs(blob);
      if (ended.signal.aborted) return;
      url = URL.createObjectURL(new Blob([blob], { type: found.type ?? 'application/octet-stream' }));
      setContent({ ...found, url });
    };
    load().catch((error: Error) => !ended.signal.aborted && setFailure(error.message));
    return () => {
      ended.abort();
      if (url !== undefined) URL.revokeObjectURL(url);
    };
  }, [source, sha256]);
  if (failure !== undefined) return <p class="dim">{failure}</p>;
  if (!content) return <p class="dim">Loading …</p>;
  return (
    <>
      <p>
        <a class="button" href={content.url} download={path.split('/').at(-1) ?? 'artifact'}>
          Save
        </a>{' '}
        <span class="id">sha256 {sha256}</span>
      </p>
      {content.type !== undefined && <img src={content.url} alt={line(path)} />}
      {content.text !== undefined && <LongText text={content.text} label={line(path)} />}
      {content.type === undefined && content.text === undefined && (
        <p class="dim">{size > mostShown ? 'It is too large for a page.' : 'It is not text.'}</p>
      )}
    </>
  );
}

interface Shown {
  url: string;
  /** The type of a picture. */
  type?: string | undefined;
  text?: string | undefined;
}

/** How a content is shown. Its first bytes decide, because a file's name can be misleading. */
async function shownAs(blob: Blob): Promise<Omit<Shown, 'url'>> {
  const head = new Uint8Array(await blob.slice(0, 16).arrayBuffer());
  const type = pictures.find(({ fits }) => fits(String.fromCharCode(...head)))?.type;
  if (type !== undefined) return { type };
  if (blob.size > mostShown) return {};
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(await blob.arrayBuffer()) };
  } catch {
    return {};
  }
}

/** Types of pictures that cannot contain scripts. */
const pictures = [
  { type: 'image/png', fits: (head: string) => head.startsWith('\x89PNG') },
  { type: 'image/jpeg', fits: (head: string) => head.startsWith('\xff\xd8\xff') },
  { type: 'image/gif', fits: (head: string) => head.startsWith('GIF8') },
  { type: 'image/webp', fits: (head: string) => head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP' },
];
