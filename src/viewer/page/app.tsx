import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { DataSource, WatchState } from '../model/data-source.ts';
import { BatchPage } from './batch/batch-page.tsx';
import { BatchesPage } from './batches/batches-page.tsx';
import { ComparePage } from './compare/compare-page.tsx';
import { type Data, DataContext } from './data/source.tsx';
import { Heading, Notice } from './parts/heading.tsx';
import { addressOf, go, type Route, useRoute } from './router.ts';
import { activeShortcuts, shortcutsAreOn, turnShortcuts, useShortcuts } from './shortcuts.ts';
import { TrialPage } from './trial/trial-page.tsx';

export function App({ source }: { source: DataSource }) {
  const data = useMemo<Data>(() => ({ source, listeners: new Set() }), [source]);
  const [state, setState] = useState<WatchState>();
  const [isHelpOpen, setHelpOpen] = useState(false);
  const route = useRoute();

  useEffect(() => {
    const ended = new AbortController();
    source.watch?.(
      (event) => {
        for (const listener of data.listeners) listener(event);
      },
      setState,
      ended.signal,
    );
    return () => ended.abort();
  }, [source, data]);

  useShortcuts([
    { keys: ['?'], does: 'Show or hide this help', run: () => setHelpOpen(true) },
    { keys: ['b'], does: 'Go to all batches', run: () => go(addressOf('/')) },
  ]);

  return (
    <DataContext.Provider value={data}>
      <button type="button" class="skip" onClick={() => document.getElementById('content')?.focus()}>
        Skip to the content
      </button>
      <header class="top">
        <a class="brand" href={addressOf('/')}>
          Offsite
        </a>
        <span class="grow" />
        <LiveState state={state} />
        {source.add && <AddFile add={source.add} />}
        <button type="button" class="quiet" onClick={() => setHelpOpen(true)} aria-keyshortcuts="?">
          Help <kbd aria-hidden="true">?</kbd>
        </button>
      </header>
      <main id="content" tabIndex={-1}>
        <Page route={route} />
      </main>
      {isHelpOpen && <Help onClose={() => setHelpOpen(false)} />}
    </DataContext.Provider>
  );
}

function Page({ route: { path, query } }: { route: Route }) {
  const [name, key = ''] = path;
  const last = useRef(path.join('/'));
  // The focus is still on an element of the previous page; the new heading takes it.
  if (last.current !== path.join('/')) {
    last.current = path.join('/');
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  }
  if (name === undefined) return <BatchesPage query={query} />;
  if (name === 'batch' && isKey(key)) return <BatchPage key={key} batch={Number(key)} query={query} />;
  if (name === 'trial' && isKey(key)) return <TrialPage trial={Number(key)} query={query} />;
  if (name === 'compare') return <ComparePage query={query} />;
  return (
    <>
      <Heading title="Not found">Not found</Heading>
      <Notice>
        There is no page at this address. <a href={addressOf('/')}>All batches</a>
      </Notice>
    </>
  );
}

const isKey = (text: string) => /^\d+$/.test(text);

/** Compares the page with another exported one, which a person chooses or drops anywhere onto the page. */
function AddFile({ add }: { add: NonNullable<DataSource['add']> }) {
  const [error, setError] = useState<Error>();
  const input = useRef<HTMLInputElement>(null);
  const compare = (file: File | undefined) =>
    file &&
    add(file).then(({ one, other }) => {
      setError(undefined);
      go(addressOf('/compare', { left: String(one), right: String(other) }));
    }, setError);

  useEffect(() => {
    const dragged = (event: DragEvent) => {
      // The browser would open the file in place of this page.
      event.preventDefault();
      if (event.type === 'drop') compare(event.dataTransfer?.files[0]);
    };
    addEventListener('dragover', dragged);
    addEventListener('drop', dragged);
    return () => {
      removeEventListener('dragover', dragged);
      removeEventListener('drop', dragged);
    };
  }, [add]);

  return (
    <>
      {error && (
        <span class="problem" role="alert">
          {error.message}
        </span>
      )}
      <input
        ref={input}
        type="file"
        accept=".html,text/html"
        aria-label="Another exported page"
        hidden
        onChange={({ currentTarget }) => {
          const [file] = currentTarget.files ?? [];
          compare(file);
          // The same file can be chosen again.
          currentTarget.value = '';
        }}
      />
      <button
        type="button"
        class="quiet"
        title="Or drop another exported page onto this one"
        onClick={() => input.current?.click()}
      >
        Compare with a file
      </button>
    </>
  );
}

function LiveState({ state }: { state: WatchState | undefined }) {
  if (state === undefined) return null;
  const isLive = state === 'live';
  return (
    <span class={`live ${state}`} role="status">
      {isLive ? 'live' : 'no connection: trying again'}
    </span>
  );
}

/** What a browser without a token sees. */
export function NoAccess() {
  return (
    <main>
      <Heading title="No access">No access</Heading>
      <p class="notice">
        Open the address that <code>offsite view</code> printed. It contains the token that this page needs.
      </p>
    </main>
  );
}

const names: Record<string, string> = {
  ArrowDown: '↓',
  ArrowUp: '↑',
  ArrowLeft: '←',
  ArrowRight: '→',
  Escape: 'Esc',
};

/** The shortcuts of the page that is shown, and how to filter. */
function Help({ onClose }: { onClose: () => void }) {
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
