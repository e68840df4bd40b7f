import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/** The page's heading. It takes the focus when the page changes, so that a screen reader reads it. */
export function Heading({ title, children }: { title: string; children: ComponentChildren }) {
  const element = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    document.title = `${title} · Offsite`;
    if (!document.activeElement || document.activeElement === document.body)
      element.current?.focus({ preventScroll: true });
  }, [title]);
  return (
    <h1 ref={element} tabIndex={-1}>
      {children}
    </h1>
  );
}

/** What stands in the place of a page's content: a wait or a failure. */
export function Notice({ error, children }: { error?: Error | undefined; children?: ComponentChildren }) {
  if (error)
    return (
      <p class="notice" role="alert">
        {error.message}
      </p>
    );
  return <p class="notice">{children ?? 'Loading …'}</p>;
}
