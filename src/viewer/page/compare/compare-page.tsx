import { Heading, Notice } from '../parts/heading.tsx';

export function ComparePage({ query: _ }: { query: URLSearchParams }) {
  return (
    <>
      <Heading title="Compare">Compare</Heading>
      <Notice>Soon.</Notice>
    </>
  );
}
