import picomatch from 'picomatch';

/** Where tests are in most repositories. */
const usual = [
  '**/{test,tests,__tests__,spec,specs,testdata,__snapshots__}/**',
  '**/*.{test,spec}.*',
  '**/*[-_]{test,spec}.*',
  '**/test_*.*',
  '**/*{Test,Tests,Spec}.{java,kt,scala,groovy,cs,php,swift}',
  '**/conftest.py',
];

/** Returns a function that tells whether a path in a repository is a test, or a file that tests read. */
export function testFileMatcher(globs: readonly string[] | undefined): (path: string) => boolean {
  return picomatch([...(globs ?? usual)], { dot: true });
}
