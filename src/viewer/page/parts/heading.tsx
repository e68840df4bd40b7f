import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { addressOf } from '../router.ts';

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

/** A page whose data has not arrived, or does not exist, with the way back. */
export function Pending({ title, error }: { title: string; error: Error | undefined }) {
  return (
    <>
      <nav class="crumbs" aria-label="You are here">
        <a href={addressOf('/')}>Batches</a>
      </nav>
      <Heading title={title}>{title}</Heading>
      <Notice error={error} />
    </>
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

/** A number or a short text, in a list of them. */
export function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
