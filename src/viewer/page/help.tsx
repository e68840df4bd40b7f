import { useEffect, useRef, useState } from 'preact/hooks';
import { activeShortcuts, shortcutsAreOn, turnShortcuts } from './shortcuts.ts';

const names: Record<string, string> = {
  ArrowDown: '↓',
  ArrowUp: '↑',
  ArrowLeft: '←',
  ArrowRight: '→',
  Escape: 'Esc',
};

/** The shortcuts of the page that is shown, and how to filter. */
export function Help({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [areOn, setOn] = useState(shortcutsAreOn);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-labelledby="help-title"
      onClose={onClose}
      onKeyDown={(event) => event.key === '?' && dialog.current?.close()}
    >
      <h2 id="help-title">Keyboard</h2>
      <dl class="keys">
        {activeShortcuts().map(({ keys, does }) => (
          <div key={does}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{names[key] ?? key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={areOn}
          onChange={() => {
            turnShortcuts(!areOn);
            setOn(!areOn);
          }}
        />
        Single keys are shortcuts
      </label>
      <h2>Filter</h2>
      <p>
        All words must match. A word is looked for in case, variant and reason.{' '}
        <code>verdict:failed,void</code>, <code>cause:agent</code>, <code>case:name</code>,{' '}
        <code>variant:name</code>, <code>duration:&gt;90s</code>, <code>cost:&gt;0.05</code> and{' '}
        <code>tokens:&gt;10k</code> ask for more. A minus excludes: <code>-cause:model</code>. Quotes keep
        spaces: <code>case:"two words"</code>.
      </p>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
