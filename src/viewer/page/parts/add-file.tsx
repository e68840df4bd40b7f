import { useEffect, useRef, useState } from 'preact/hooks';
import type { DataSource } from '../../model/data-source.ts';
import { addressOf, go } from '../router.ts';

/** Compares the page with another exported one, which a person chooses or drops anywhere onto the page. */
export function AddFile({ add }: { add: NonNullable<DataSource['add']> }) {
  const [error, setError] = useState<Error>();
  const input = useRef<HTMLInputElement>(null);
  const compare = async (file: File | undefined) => {
    if (!file) return;
    try {
      const { one, other } = await add(file);
      setError(undefined);
      go(addressOf('/compare', { left: String(one), right: String(other) }));
    } catch (thrown) {
      setError(thrown as Error);
    }
  };
  const current = useRef(compare);
  current.current = compare;

  useEffect(() => {
    const dragged = (event: DragEvent) => event.preventDefault();
    const dropped = (event: DragEvent) => {
      // The browser would open the file in place of this page.
      event.preventDefault();
      void current.current(event.dataTransfer?.files[0]);
    };
    addEventListener('dragover', dragged);
    addEventListener('drop', dropped);
    return () => {
      removeEventListener('dragover', dragged);
      removeEventListener('drop', dropped);
    };
  }, []);

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
          // The same file can be chosen again.
          void compare(file).then(() => {
            if (input.current) input.current.value = '';
          });
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
