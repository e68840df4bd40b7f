import { useLoaded } from '../data/source.tsx';
import { TextBlock } from './text-block.tsx';

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
        <LongText key={sha256} {...{ text, label }} />
      )}
    </div>
  );
}

/** Characters that are shown at first. */
const shownAtFirst = 64 * 1024;

/** A text that is here already, but may be too long to show at once. */
export function LongText({ text, label }: { text: string; label: string }) {
  const isLong = text.length > shownAtFirst;
  return (
    <TextBlock
      text={isLong ? text.slice(0, shownAtFirst) : text}
      label={label}
      {...(isLong && {
        wholeLength: text.length,
        load: async (limit?: number) => (limit === undefined ? text : text.slice(0, limit)),
      })}
    />
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
