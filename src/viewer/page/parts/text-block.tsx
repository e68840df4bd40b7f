import { useEffect, useState } from 'preact/hooks';
import { lines } from './foreign.ts';
import { count } from './quantities.ts';

interface TextBlockProps {
  text: string;
  label: string;
  /** The length of the whole text, if `text` is cut. */
  wholeLength?: number | undefined;
  /** Loads the whole text, or as much of it as the limit says. */
  load?: ((limit?: number) => Promise<string>) | undefined;
}

/** Characters that are loaded without a click. */
const loadedAtOnce = 64 * 1024;
/** Characters that a page shows at most: a browser gets slow with more. */
const mostShown = 20_000_000;
/** Characters of a part that the browser lays out only when it comes into view. */
const partLength = 16 * 1024;

/** Somebody else's text, of any length. */
export function TextBlock({ text, label, wholeLength, load }: TextBlockProps) {
  const [loaded, setLoaded] = useState<{ text: string; isWhole: boolean }>();
  const [failure, setFailure] = useState<string>();
  const isCut = wholeLength !== undefined && load !== undefined;

  const get = (limit?: number) =>
    load?.(limit).then(
      (whole) => setLoaded({ text: whole, isWhole: limit === undefined || whole.length < limit }),
      (error: Error) => setFailure(error.message),
    );
  useEffect(() => {
    if (isCut) void get(loadedAtOnce);
  }, []);

  const isWhole = !wholeLength || loaded?.isWhole === true;
  return (
    <div class="text-block">
      <div class="text" role="region" aria-label={label} tabIndex={0}>
        {partsOf(loaded?.text ?? text).map((part, index) => (
          <pre key={index}>{lines(part)}</pre>
        ))}
      </div>
      {!isWhole && (
        <p class="note">
          {count(wholeLength)} characters; the middle is left out.{' '}
          {wholeLength > mostShown
            ? 'It is too long for a page: see the raw record.'
            : load && (
                <button type="button" onClick={() => void get()}>
                  Show all
                </button>
              )}
          {failure}
        </p>
      )}
    </div>
  );
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
