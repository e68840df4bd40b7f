/** The state of the git repository that a suite was in when its batch was planned. */
export interface SuiteCommit {
  /** The whole hash. */
  id: string;
  /** Whether files of the suite's folder differed from it. */
  dirty: boolean;
}

/** `3f2a1b9c`, or `3f2a1b9c-dirty`, as `git describe` writes it. */
export function commitText({ id, dirty }: SuiteCommit): string {
  return `${id.slice(0, 8)}${dirty ? '-dirty' : ''}`;
}
