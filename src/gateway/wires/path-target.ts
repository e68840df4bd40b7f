/** What a path asks for, on a wire whose bodies do not say it. */
export interface PathTarget {
  model: string;
  purpose: 'answer' | 'count';
  streamed: boolean;
}
