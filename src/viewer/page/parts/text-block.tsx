import { useRef, useState } from 'preact/hooks';
import { useLoaded } from '../data/source.tsx';
import { lines } from './foreign.ts';
import { count } from './quantities.ts';

interface TextBlockProps {
  text: string;
  label: string;
  /** Set if `text` is cut: the length of the whole, and how to load it, or as much as the limit says. */
  cut?: { length: number; load: (limit?: number) => Promise<string> } | undefined;
}

/** Characters that are shown without a click. */
const shownAtFirst = 64 * 1024;
/** Characters that a page shows at most: a browser gets slow with more. */
const mostShown = 20_000_000;
/** Characters of a part that the browser lays out only when it comes into view. */
const partLength = 16 * 1024;

/** Somebody else's text, of any length. */
export function TextBlock({ text, label, cut }: TextBlockProps) {
  // How often all was asked for: each time it is loaded anew, because it may have failed.
  const [asked, setAsked] = useState(0);
  const isAll = asked > 0;
  const limit = isAll ? undefined : shownAtFirst;
  const loaded = useLoaded(cut && `${limit} ${asked}`, async () => cut?.load(limit));
  const shown = cut ? loaded.value : text.slice(0, limit);
  // What was shown stays while more is loaded.
  const last = useRef(text);
  last.current = shown ?? last.current;
  const length = cut?.length ?? text.length;
  const isWhole = shown !== undefined && (isAll || shown.length < shownAtFirst);
  return (
    <div class="text-block">
      <div class="text" role="region" aria-label={label} tabIndex={0}>
        {partsOf(last.current).map((part, index) => (
          <pre key={index}>{lines(part)}</pre>
        ))}
      </div>
      {!isWhole && (
        <p class="note">
          {count(length)} characters; {cut ? 'the middle' : 'the rest'} is left out.{' '}
          {length > mostShown ? (
            'It is too long for a page: see the raw record.'
          ) : (
            <button type="button" onClick={() => setAsked(asked + 1)}>
              Show all
            </button>
          )}
          {loaded.error?.message}
        </p>
      )}
    </div>
  );
}

/** A kept content as text. JSON is laid out. */
export function BlobText({ label, sha256 }: { label: string; sha256: string }) {
  const { value: text, error } = useLoaded(sha256, async (source, signal) =>
    laidOut(await (await source.blob(sha256, signal)).text()),
  );
  return (
    <div class="named">
      <h3>{label}</h3>
      {text === undefined ? (
        <p class="dim">{error?.message ?? 'Loading …'}</p>
      ) : (
        <TextBlock key={sha256} {...{ text, label }} />
      )}
    </div>
  );
}

/** JSON with line breaks; any other text as it is. */
export function laidOut(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Parts of a text that end at lines, or within a line that is longer than a part. */
export function partsOf(text: string): string[] {
  const parts: string[] = [];
  for (let start = 0; start < text.length; ) {
    const most = start + partLength;
    const lineEnd = most >= text.length ? text.length : text.lastIndexOf('\n', most);
    const end = lineEnd > start ? lineEnd : most;
    parts.push(text.slice(start, end));
    // The line feed that ends a part is shown by the next part's beginning.
    start = text[end] === '\n' ? end + 1 : end;
  }
  return parts.length > 0 ? parts : [''];
}
