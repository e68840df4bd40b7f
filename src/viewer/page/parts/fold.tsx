import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

interface FoldProps {
  class?: string;
  summary: ComponentChildren;
  /** Whether it is open at first. */
  isOpen?: boolean;
  /** What is in it: it is made when it is opened for the first time. */
  children: () => ComponentChildren;
}

/** Something below a line that opens and closes it. */
export function Fold({ summary, isOpen = false, children, ...more }: FoldProps) {
  const [wasOpened, setOpened] = useState(isOpen);
  return (
    <details
      class={more.class}
      open={isOpen}
      onToggle={(event) => event.currentTarget.open && setOpened(true)}
    >
      <summary>{summary}</summary>
      {wasOpened && children()}
    </details>
  );
}
