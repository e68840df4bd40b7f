import type { Content } from '../../text/output.ts';

/** Shows what is going on. Disposing ends that; what was printed stays. */
export interface Display extends Disposable {
  /** Whether what is going on can be seen all the time. */
  readonly isLive: boolean;
  /** Prints lines that stay. */
  print(content: Content): void;
  /** Notes that something has changed. Costs almost nothing. */
  changed(): void;
}
