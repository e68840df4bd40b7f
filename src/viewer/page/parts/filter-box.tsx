import { useEffect, useRef, useState } from 'preact/hooks';
import { useShortcuts } from '../shortcuts.ts';

interface FilterBoxProps {
  value: string;
  onChange: (value: string) => void;
  label: string;
  placeholder: string;
  problems?: readonly string[];
}

/** A box for words to filter by. `/` goes to it, Escape leaves it, and a second Escape empties it. */
export function FilterBox({ value, onChange, label, placeholder, problems = [] }: FilterBoxProps) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(value);
  // The address can change the value too. While a person types, `value` lags behind and must not undo newer
  // input.
  useEffect(() => {
    if (document.activeElement !== input.current) setText(value);
  }, [value]);
  useShortcuts([
    { keys: ['/'], does: 'Filter', run: () => input.current?.select() },
    { keys: ['Escape'], does: 'Leave the filter; then empty it', run: () => onChange('') },
  ]);
  return (
    <div class="filter">
      <input
        ref={input}
        type="search"
        aria-label={label}
        aria-keyshortcuts="/"
        aria-describedby={problems.length > 0 ? 'filter-problems' : undefined}
        placeholder={placeholder}
        value={text}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => {
          setText(event.currentTarget.value);
          onChange(event.currentTarget.value);
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return;
          event.preventDefault();
          event.currentTarget.blur();
        }}
      />
      {problems.length > 0 && (
        <span id="filter-problems" class="problem">
          {problems.join('; ')}
        </span>
      )}
    </div>
  );
}
